import assert from "node:assert/strict";
import type { Readable } from "node:stream";
import { it } from "node:test";
import { FilesRefused } from "../kit/folder-tar.ts";
import type { ReleaseManifest } from "./release-folder.ts";
import type { OneOffCommand, Runtime, Workload } from "./runtime.ts";

/** See `RuntimeFixture`. */
export type MakeImage = (
  projectId: string,
  files: Readonly<Record<string, string>>,
  webCommand: string,
  more?: Partial<Pick<ReleaseManifest, "processes" | "storage">>,
) => Promise<string>;

interface Stage {
  readonly runtime: Runtime;
  readonly fixture: { readonly workload?: Partial<Workload>; readonly makeImage: MakeImage };
  readonly workload: (more?: Partial<Workload>) => Workload;
  readonly task: (command: string) => OneOffCommand;
}

const succeeded = { outcome: "exited", code: 0, out_of_memory: false };
const files = { "server.js": "" };

/** The part of `runtimeSuite` about the storage folders of projects. */
export function storageRules(stage: () => Stage): void {
  it("measures what lies in a project's storage folder", async () => {
    const { runtime, workload, task } = stage();
    const wanted = workload({ storage_access: "open" });
    const { project_id, project_number } = wanted;
    const write = task('head -c 3000000 /dev/zero > "$STORAGE_DIR/big"');
    assert.deepEqual(await runtime.runOnce(wanted, write), succeeded);
    const bytes = await runtime.storageBytes({ project_id, project_number });
    assert.ok(bytes !== null && bytes >= 3_000_000 && bytes < 4_000_000, String(bytes));
    const none = { project_id: "prj_none", project_number: 4_000_000 };
    assert.equal(await runtime.storageBytes(none), 0);
    for (let twice = 0; twice < 2; twice += 1) await runtime.removeStorage({ project_id, project_number });
    assert.equal(await runtime.storageBytes({ project_id, project_number }), 0);
  });

  it("streams the storage folder, and unpacks it beside the live files as the project's user", async () => {
    const { runtime, fixture, workload, task } = stage();
    const image_ref = await fixture.makeImage("prj_archived", files, "node server.js");
    const wanted = workload({ project_id: "prj_archived", image_ref, storage_access: "open" });
    const never = new AbortController().signal;
    assert.equal(await runtime.readStorage({ project_id: "prj_none", project_number: 4_000_000 }, never), null);
    const fill = 'cd "$STORAGE_DIR" && mkdir -p a/empty && echo kept > a/file && chmod 750 a && ln -s /etc/shadow link';
    assert.deepEqual(await runtime.runOnce(wanted, task(fill)), succeeded);
    const archive = await runtime.readStorage(wanted, never);
    assert.ok(archive);
    await runtime.writeStorage(wanted, "restored_1", archive, never);
    const check = `cd "$STORAGE_DIR/.restored/restored_1" && test "$(cat a/file)" = kept && test -d a/empty && test -O a/file && \
      test "$(stat -c %a a)" = 750 && test "$(readlink link)" = /etc/shadow && echo more >> a/file`;
    assert.deepEqual(await runtime.runOnce(wanted, task(check)), succeeded);
    const moved = workload({
      ...{ project_id: "prj_moved", project_number: 4_000_001, storage_access: "open" },
      image_ref: await fixture.makeImage("prj_moved", files, "node server.js"),
    });
    await runtime.writeStorage(moved, null, (await runtime.readStorage(wanted, never)) as Readable, never);
    const live = check.replace("/.restored/restored_1", "");
    assert.deepEqual(await runtime.runOnce(moved, task(live)), succeeded);
    const again = (await runtime.readStorage(wanted, never))?.toArray();
    assert.ok(!Buffer.concat((await again) ?? []).includes("restored_1"), "what was restored is not part of the files");
  });

  it("counts at least a block for each file of a storage folder", async () => {
    const { runtime, fixture, workload, task } = stage();
    const image_ref = await fixture.makeImage("prj_small_files", files, "node server.js");
    const wanted = workload({ project_id: "prj_small_files", image_ref, storage_access: "open" });
    await runtime.runOnce(wanted, task('for i in $(seq 500); do : > "$STORAGE_DIR/$i"; done'));
    assert.ok(((await runtime.storageBytes(wanted)) ?? 0) >= 500 * 4096);
  });

  it("starts instances and commands that may only read the storage folder", async (t) => {
    const { runtime, workload, task } = stage();
    if (!(await runtime.describe()).isolation.includes("namespaces")) return t.skip("nothing is mounted here");
    await runtime.runOnce(workload({ storage_access: "open" }), task('echo kept > "$STORAGE_DIR/kept"'));
    const limited = workload({ storage_access: "read_only" });
    const write = task('cat "$STORAGE_DIR/kept" && ! rm "$STORAGE_DIR/kept" && ! echo x > "$STORAGE_DIR/new"');
    assert.deepEqual(await runtime.runOnce(limited, write), succeeded);
  });

  it("mounts the storage folder where the application expects it", async (t) => {
    const { runtime, fixture, workload, task } = stage();
    const storage_access = fixture.workload?.storage_access ?? "open";
    if (storage_access === "none") return t.skip("this runtime has no storage");
    if (!(await runtime.describe()).isolation.includes("namespaces")) return t.skip("nothing is mounted here");
    const { project_id } = workload();
    await runtime.runOnce(workload(), task('echo kept > "$STORAGE_DIR/earlier"'));
    for (const storage of ["/data", "/app/kept"]) {
      const image_ref = await fixture.makeImage(project_id, files, "node server.js", { storage });
      const use = `[ "$STORAGE_DIR" = ${storage} ] && cat ${storage}/earlier && echo x > ${storage}/later`;
      assert.deepEqual(await runtime.runOnce(workload({ image_ref }), task(use)), succeeded, storage);
      const written = task('rm "$STORAGE_DIR/later"');
      assert.deepEqual(await runtime.runOnce(workload(), written), succeeded, storage);
    }
  });

  it("moves what is named below the storage folder, keeps what it replaces, and follows no link", async () => {
    const { runtime, workload, task } = stage();
    const owner = workload({ storage_access: "open" });
    const { signal } = new AbortController();
    const make =
      'mkdir "$STORAGE_DIR/m" && cd "$STORAGE_DIR/m" && mkdir -p from/-a to && echo x > from/-a/file && ln -s to way';
    assert.deepEqual(await runtime.runOnce(owner, task(make)), succeeded);
    const move = (from: string, to: string, more?: { kept: string }) =>
      runtime.moveStored(owner, { from: `m/${from}`, to: `m/${to}`, ...more }, signal);
    const kindOf = async (path: string) => (await runtime.statStored(owner, `m/${path}`))?.kind;
    assert.deepEqual(
      [await kindOf("from/-a/file"), await kindOf("way"), await kindOf("none")],
      [...["file", "link", undefined]],
    );
    assert.equal(await move("from/-a", "kept/deep/-a"), "moved");
    assert.equal(await move("from/-a", "kept/other"), "missing");
    assert.equal(await move("kept", "to"), "taken");
    await assert.rejects(move("kept/deep/-a", "way/in"), FilesRefused);
    await assert.rejects(move("way/../kept/deep", "in"), FilesRefused);
    const add = task('cd "$STORAGE_DIR/m" && echo y > other && chmod 600 other && ln -s / out');
    assert.deepEqual(await runtime.runOnce(owner, add), succeeded);
    await assert.rejects(move("other", "kept/deep/-a/file", { kept: "m/out/x" }), FilesRefused);
    assert.equal(await move("other", "kept/deep/-a/file", { kept: "m/was/file" }), "replaced");
    const check = task(
      'cd "$STORAGE_DIR/m" && [ "$(cat kept/deep/-a/file)$(cat was/file)" = yx ] && [ -O kept/deep ] && [ ! -e to/in ] && \
      [ "$(stat -c %a kept/deep/-a/file)" = 600 ]',
    );
    assert.deepEqual(await runtime.runOnce(owner, check), succeeded);
  });

  it("deletes what is named below the storage folder, whatever its owner made of the way there", async () => {
    const { runtime, workload, task } = stage();
    const owner = workload({ storage_access: "open" });
    const { signal } = new AbortController();
    const make = 'mkdir -p "$STORAGE_DIR/a/b" && echo x > "$STORAGE_DIR/a/b/c" && ln -sfn / "$STORAGE_DIR/link"';
    await runtime.runOnce(owner, task(make));
    assert.equal(await runtime.removeStored(owner, "a/b", signal), true);
    assert.equal(await runtime.removeStored(owner, "a/b", signal), false);
    assert.equal(await runtime.removeStored(owner, "link", signal), true);
    const left = task('[ -d "$STORAGE_DIR/a" ] && [ ! -e "$STORAGE_DIR/a/b" ] && [ ! -L "$STORAGE_DIR/link" ]');
    assert.deepEqual(await runtime.runOnce(owner, left), succeeded);
  });
}
