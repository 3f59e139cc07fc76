import assert from "node:assert/strict";
import { PassThrough, Readable } from "node:stream";
import { after, before, describe, it } from "node:test";
import { newId } from "../kit/ids.ts";
import type { Builder, BuildOutcome, BuildRequest } from "./builder.ts";

/** What an adapter's test provides to the suite: a builder without images. */
export interface BuilderSubject {
  readonly builder: Builder;
  close(): Promise<void>;
}

/** A source tree: file contents by path. */
export type SourceFiles = Readonly<Record<string, string>>;

const site: SourceFiles = { "index.html": "<h1>Ahoy</h1>\n" };
const app: SourceFiles = {
  Procfile: "web: ./serve.sh\nrelease: ./migrate.sh\nworker: ./work.sh\n",
  "serve.sh": "#!/bin/sh\n",
  "migrate.sh": "#!/bin/sh\n",
  "work.sh": "#!/bin/sh\n",
};

/** The rules that every adapter of `Builder` obeys. */
export function builderSuite(name: string, open: () => Promise<BuilderSubject>): void {
  describe(`${name} keeps the rules of builders`, () => {
    let subject: BuilderSubject;
    before(async () => {
      subject = await open();
    });
    after(() => subject.close());

    describe("images", () => imageRules(() => subject.builder));
    describe("outcomes", () => outcomeRules(() => subject.builder));
    describe("plans", () => planRules(() => subject.builder));
  });
}

function imageRules(builder: () => Builder): void {
  it("an image says how it is run", async () => {
    const { outcome } = await attempt(builder(), app);
    const image = imageOf(outcome);
    assert.match(image.image_ref, /^sha256:[0-9a-f]{64}$/);
    assert.equal(image.web_command, "./serve.sh");
    assert.equal(image.release_command, "./migrate.sh");
    assert.deepEqual(image.processes, { worker: "./work.sh" });
    assert.ok(image.size_bytes > 0);
  });

  it("an application need not have a web process", async () => {
    const image = imageOf(
      (await attempt(builder(), { Procfile: "worker: ./work.sh\n", "work.sh": "#!/bin/sh\n" })).outcome,
    );
    assert.deepEqual([image.web_command, image.processes], [null, { worker: "./work.sh" }]);
  });

  it("static files are served without a command of their own", async () => {
    const image = imageOf((await attempt(builder(), site)).outcome);
    assert.equal(image.kind, "static");
    assert.notEqual(image.web_command, "");
    assert.equal(image.release_command, null);
  });

  it("the same source gives the same image, another source another", async () => {
    const first = imageOf((await attempt(builder(), app)).outcome);
    const again = imageOf((await attempt(builder(), app)).outcome);
    const other = imageOf((await attempt(builder(), { ...app, "more.txt": "more" })).outcome);
    assert.equal(again.image_ref, first.image_ref);
    assert.notEqual(other.image_ref, first.image_ref);
  });

  it("names in the source are bytes: they need not be UTF-8, and tell sources apart", async () => {
    const named = async (last: number) => {
      const bytes = Buffer.from([0x6e, 0xff, last]);
      const source = () => Readable.from([Buffer.concat([fileOfBytes(bytes), tarOfFiles(site)])]);
      return imageOf((await attempt(builder(), {}, { source })).outcome).image_ref;
    };
    assert.notEqual(await named(0xfe), await named(0xfd));
  });

  it("a name at the root that every object knows tells sources apart", async () => {
    for (const name of ["constructor", "__proto__"]) {
      const one = imageOf((await attempt(builder(), { ...app, [name]: "one" })).outcome);
      const other = imageOf((await attempt(builder(), { ...app, [name]: "other" })).outcome);
      assert.notEqual(one.image_ref, other.image_ref, name);
    }
  });

  it("images are listed by project", async () => {
    const [one, other] = [newId("prj"), newId("prj")];
    const image = imageOf((await attempt(builder(), site, { project_id: one })).outcome);
    assert.deepEqual(await builder().images(one), [image.image_ref]);
    assert.deepEqual(await builder().images(other), []);
  });

  it("another project adopts an image, once, with its commands; a missing one is told", async () => {
    const [from, to] = [newId("prj"), { project_id: newId("prj"), project_number: 7 }];
    const { image_ref } = imageOf((await attempt(builder(), app, { project_id: from })).outcome);
    const adopted = await builder().adopt({ project_id: from, image_ref }, to);
    assert.equal(await builder().adopt({ project_id: from, image_ref }, to), adopted);
    assert.deepEqual(await builder().images(to.project_id), [adopted]);
    assert.deepEqual(await builder().images(from), [image_ref]);
    const none = { project_id: newId("prj"), project_number: 8 };
    assert.equal(await builder().adopt({ project_id: none.project_id, image_ref }, none), null);
  });
}

function outcomeRules(builder: () => Builder): void {
  it("a source that tells nothing to run fails, with what to do about it", async () => {
    const { outcome, lines } = await attempt(builder(), { "README.md": "nothing" });
    assert.ok(outcome.outcome === "failed");
    assert.equal(outcome.failure.stage, "detect");
    assert.equal(outcome.failure.code, "nothing_to_run");
    assert.match(outcome.failure.hint, /Procfile/);
    assert.ok(lines.some((line) => line.startsWith(" !     ")));
  });

  it("a file of which the push has only Git LFS's pointer is refused with the way out, unless berth.json ignores it", async () => {
    const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${"0".repeat(64)}\nsize 4000000\n`;
    const files = { ...app, "img/logo.png": pointer };
    const { outcome } = await attempt(builder(), files);
    assert.ok(outcome.outcome === "failed");
    assert.deepEqual([outcome.failure.stage, outcome.failure.code], ["receive", "lfs_not_fetched"]);
    assert.match(outcome.failure.summary, /img\/logo\.png/);
    assert.match(outcome.failure.hint, /git lfs migrate export.*"lfs": "ignore"/);
    const ignored = await attempt(builder(), files, { commands: { lfs: "ignore" } });
    assert.equal(ignored.outcome.outcome, "built");
  });

  it("a failed build leaves no image", async () => {
    const project_id = newId("prj");
    await attempt(builder(), { "README.md": "nothing" }, { project_id });
    assert.deepEqual(await builder().images(project_id), []);
  });

  it("log lines hold no line feed and begin as git's users know them", async () => {
    const { lines } = await attempt(builder(), app);
    assert.ok(lines.length > 0);
    for (const line of lines) assert.match(line, /^(?:-----> | {7}| !     |$)[^\n]*$/);
  });

  it("process types that are not run are named", async () => {
    const { lines } = await attempt(builder(), app);
    assert.ok(lines.some((line) => line.includes("worker")));
  });

  it("an aborted build is cancelled, even while its source is still coming", async () => {
    const stop = new AbortController();
    const source = new PassThrough();
    const pending = attempt(builder(), site, { source: () => source, signal: stop.signal });
    source.write(tarOfFiles(site).subarray(0, 700));
    stop.abort();
    assert.equal((await pending).outcome.outcome, "cancelled");
  });

  it("a build that is cancelled before it starts does nothing", async () => {
    const { outcome } = await attempt(builder(), site, { signal: AbortSignal.abort() });
    assert.equal(outcome.outcome, "cancelled");
  });
}

function planRules(builder: () => Builder): void {
  const plan = (files: SourceFiles, project_id = "prj_suite") => {
    const { signal } = new AbortController();
    return builder().plan({
      org_id: "org_suite",
      project_id,
      signal,
      source: () => Readable.from([tarOfFiles(files)]),
    });
  };

  it("a plan names what the image of the same source will run, and makes no image", async () => {
    const project_id = newId("prj");
    const planned = await plan(app, project_id);
    assert.ok(planned.outcome === "planned", JSON.stringify(planned));
    const { web, processes, release_command, uses_dockerfile } = planned.plan;
    assert.deepEqual(
      [web?.command, release_command, processes],
      ["./serve.sh", "./migrate.sh", { worker: "./work.sh" }],
    );
    assert.equal(uses_dockerfile, false);
    assert.deepEqual(await builder().images(project_id), []);
  });

  it("a plan says how static files are found, and that a source without a web process has none", async () => {
    const found = await plan(site);
    assert.ok(found.outcome === "planned");
    assert.deepEqual([found.plan.kind, found.plan.web?.because], ["static", "index.html"]);
    const worker = await plan({ Procfile: "worker: ./work.sh\n", "work.sh": "#!/bin/sh\n" });
    assert.ok(worker.outcome === "planned");
    assert.equal(worker.plan.web, null);
  });

  it("a plan names the steps of a package with a build script, whose start only the build decides", async () => {
    const manifest = { name: "a", version: "1.0.0", scripts: { build: "node build.js" } };
    const planned = await plan({ "package.json": JSON.stringify(manifest), "build.js": "" });
    assert.ok(planned.outcome === "planned", JSON.stringify(planned));
    assert.equal(planned.plan.kind, "node");
    assert.ok(planned.plan.tools.some((tool) => tool.startsWith("Node.js ")));
    assert.ok(planned.plan.steps.some(({ stage, command }) => stage === "build" && command.includes("build")));
    assert.equal(planned.plan.web?.command, null);
  });

  it("a plan refuses what a build would refuse, with the same code", async () => {
    const planned = await plan({ "README.md": "nothing" });
    assert.ok(planned.outcome === "refused");
    assert.deepEqual([planned.failure.stage, planned.failure.code], ["detect", "nothing_to_run"]);
  });

  it("an aborted plan is cancelled, even while its source is still coming, and keeps no other from being made", async () => {
    const stop = new AbortController();
    const source = new PassThrough();
    source.write(tarOfFiles(site).subarray(0, 700));
    const of = { org_id: "org_suite", project_id: "prj_suite" };
    const pending = builder().plan({ ...of, source: () => source, signal: stop.signal });
    assert.equal((await plan(site, "prj_other")).outcome, "planned");
    stop.abort();
    assert.equal((await pending).outcome, "cancelled");
  });
}

/** Builds files as a push would. */
export async function attempt(builder: Builder, files: SourceFiles, request: Partial<BuildRequest> = {}) {
  const lines: string[] = [];
  const outcome = await builder.build({
    ...{
      build_id: newId("bld"),
      project_id: "prj_suite",
      project_number: 1,
      env: {},
      secrets: Object.values(request.env ?? {}),
      reach: [],
    },
    source: () => Readable.from([tarOfFiles(files)]),
    limits: { memoryBytes: 2 * 1024 ** 3, processes: 512, timeoutMs: 600_000, silenceMs: 300_000 },
    signal: new AbortController().signal,
    onLine: (line) => void lines.push(line),
    ...{ org_id: "org_test", registries: [] },
    ...request,
  });
  return { outcome, lines };
}

/** Returns the image of a build; fails the test if the build did not succeed. */
export function imageOf(outcome: BuildOutcome) {
  assert.ok(outcome.outcome === "built", JSON.stringify(outcome, null, 2));
  return outcome.image;
}

/** Creates a tar archive (ustar) of files, as `git archive` does; names ending in `.sh` are executable. */
export function tarOfFiles(files: SourceFiles): Buffer {
  const members = Object.entries(files).map(([path, text]) => {
    const content = Buffer.from(text);
    const padding = Buffer.alloc((512 - (content.length % 512)) % 512);
    return Buffer.concat([
      tarHeader({ path, mode: path.endsWith(".sh") ? 0o755 : 0o644, size: content.length }),
      content,
      padding,
    ]);
  });
  return Buffer.concat([...members, Buffer.alloc(1024)]);
}

interface Member {
  readonly path: string | Buffer;
  readonly mode: number;
  readonly size: number;
  readonly link?: string;
}

function fileOfBytes(path: Buffer): Buffer {
  return tarHeader({ path, mode: 0o644, size: 0 });
}

/** With `link`, the member is a symbolic link. */
function tarHeader({ path, mode, size, link }: Member): Buffer {
  const header = Buffer.alloc(512);
  const octal = (value: number, width: number) => `${value.toString(8).padStart(width - 1, "0")}\0`;
  (typeof path === "string" ? Buffer.from(path) : path).copy(header, 0, 0, 100);
  header.write(octal(mode, 8) + octal(0, 8) + octal(0, 8) + octal(size, 12) + octal(1_700_000_000, 12), 100);
  header.write(`        ${link === undefined ? "0" : `2${link}`}`, 148);
  header.write("ustar\x0000", 257);
  header.write(
    `${octal(
      header.reduce((sum, byte) => sum + byte, 0),
      7,
    )} `,
    148,
  );
  return header;
}

/** Creates a tar archive with a page and symbolic links (targets by path). */
export function tarWithLinks(links: Readonly<Record<string, string>>): Buffer {
  const members = Object.entries(links).map(([path, link]) => tarHeader({ path, mode: 0o777, size: 0, link }));
  return Buffer.concat([...members, tarOfFiles(site)]);
}
