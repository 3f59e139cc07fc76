// Drawn with other builder files: its rules are its own, and .ci/run shows them with every change.
import assert from "node:assert/strict";
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, before, describe, it } from "node:test";
import { attempt, imageOf, tarWithLinks } from "../../ports/builder.suite.ts";
import { until } from "../../kit/until.ts";
import { createProcessBuilder } from "./process-builder.ts";
import { makeTestBuilder, visit, type TestBuilder } from "../../../test/support/process-builder.ts";
import { guardMs } from "../../../test/support/eventually.ts";

const building = (script: string) => ({
  "package.json": JSON.stringify({ scripts: { build: "node build.js", start: "node ." } }),
  "build.js": script,
});

describe("a build", () => {
  let test: TestBuilder;
  before(async () => {
    test = await makeTestBuilder();
  });
  after(() => test.close());

  it("sees neither the platform's files nor other projects'", async () => {
    await writeFile(join(test.root, "planted"), "planted secret");
    const paths = [
      test.root,
      join(test.root, "planted"),
      test.options.cachesDir,
      test.options.releasesDir,
      "/etc/shadow",
      "/root",
      process.execPath,
    ];
    const { lines } = await attempt(
      test.builder,
      building(
        `for (const path of ${JSON.stringify(paths)}) console.log(path, require("fs").existsSync(path) ? "SEEN" : "hidden")`,
      ),
    );
    assert.equal(lines.filter((line) => line.endsWith("hidden")).length, paths.length, lines.join("\n"));
  });

  it("cannot write to tools that other projects use", async () => {
    const script = `for (const path of ["/opt/node/bin/node", "/opt/npm/package/package.json", "/usr/x"]) try { require("fs").appendFileSync(path, "x"); console.log("WROTE", path) } catch (error) { console.log("kept", error.code) }`;
    const { lines } = await attempt(test.builder, building(script));
    assert.equal(lines.filter((line) => line.includes("kept")).length, 3, lines.join("\n"));
  });

  it("gets the project's variables, whose values do not reach the log, and nothing of the platform's", async () => {
    const script = `console.log("secret is", process.env.API_KEY, "length", process.env.API_KEY.length); console.log("names", Object.keys(process.env).join(" "))`;
    process.env["BERTH_PLANTED"] = "planted";
    const { lines } = await attempt(test.builder, building(script), { env: { API_KEY: "k-1234567890" } });
    delete process.env["BERTH_PLANTED"];
    assert.ok(
      lines.some((line) => line.includes("secret is [redacted] length 12")),
      lines.join("\n"),
    );
    assert.ok(!lines.some((line) => line.includes("BERTH_PLANTED") || line.includes("k-1234567890")));
  });

  it("that fails with a secret in its error does not tell it", async () => {
    const { outcome, lines } = await attempt(
      test.builder,
      building(`throw new Error("cannot log in with " + process.env.API_KEY)`),
      { env: { API_KEY: "k-1234567890" } },
    );
    assert.ok(outcome.outcome === "failed" && outcome.failure.summary.includes("[redacted]"), JSON.stringify(outcome));
    assert.ok(!JSON.stringify([outcome, lines]).includes("k-1234567890"));
  });

  it("ends soon after it is cancelled, with everything it started", async () => {
    const stop = new AbortController();
    const script = `require("child_process").spawn("sleep", ["61.7"], { detached: true, stdio: "ignore" }).unref(); console.log("started"); setInterval(() => {}, 1000)`;
    const onLine = (line: string) => void (line.includes("started") && stop.abort());
    const { outcome } = await attempt(test.builder, building(script), { signal: stop.signal, onLine });
    assert.equal(outcome.outcome, "cancelled");
    const isGone = () => until(async () => ((await sleeping("61.7")) ? undefined : true), { timeoutMs: guardMs });
    assert.equal(await isGone(), true);
    await test.builder.settle();
    assert.equal(await filesIn(test.options.buildsDir), 0);
  });

  it("may leave links anywhere without the platform following them", async () => {
    const script = `const fs = require("fs"); fs.symlinkSync("/etc", "dist"); fs.writeFileSync("index.html", "")`;
    const files = { "package.json": JSON.stringify({ scripts: { build: "node build.js" } }), "build.js": script };
    const { outcome } = await attempt(test.builder, files);
    assert.ok(outcome.outcome === "failed" && outcome.failure.code === "build_output_missing", JSON.stringify(outcome));
  });

  it("cannot make the platform write or remove anything through a link, wherever it put it", async () => {
    const victim = join(test.root, "victim");
    await mkdir(join(victim, ".cache"), { recursive: true });
    const planted = ["server.mjs", "install-state.gz", ".modules.yaml", ".cache/kept"];
    for (const name of planted) await writeFile(join(victim, name), "untouched");
    const links = { ".berth-static-server.mjs": `${victim}/server.mjs`, node_modules: victim, ".yarn": victim };
    const script = `
      const fs = require("fs");
      fs.mkdirSync("dist");
      fs.writeFileSync("dist/index.html", "site");
      for (const [name, target] of Object.entries(${JSON.stringify(links)})) {
        fs.rmSync(name, { recursive: true, force: true });
        fs.symlinkSync(target, name);
      }`;
    const scripts = { postinstall: "mkdir -p node_modules", build: "node build.js" };
    const { outcome } = await attempt(test.builder, {
      "package.json": JSON.stringify({ scripts }),
      "build.js": script,
      Procfile: "release: true\n",
    });
    for (const name of planted) assert.equal(await readFile(join(victim, name), "utf8"), "untouched", name);
    assert.deepEqual(await visit(test, imageOf(outcome)), { status: 200, text: "site" });
  });

  it("does not get a package folder below /tmp back once it has put a link on the way to it", async () => {
    const packages = join(test.root, "packages");
    await mkdir(packages, { recursive: true });
    await writeFile(join(packages, "a.whl"), "a");
    const builder = await createProcessBuilder({ ...test.options, packageDirs: [packages] });
    const look = (name: string) =>
      `console.log("${name}", require("fs").existsSync(${JSON.stringify(`${packages}/a.whl`)}))`;
    const move = `const fs = require("fs"); fs.renameSync(${JSON.stringify(test.root)}, "/tmp/moved"); fs.symlinkSync("/tmp/moved", ${JSON.stringify(test.root)});`;
    const { lines, outcome } = await attempt(builder, {
      "package.json": JSON.stringify({
        scripts: { postinstall: "node first.js", build: "node second.js", start: "node ." },
      }),
      "first.js": `${look("first")}; ${move}`,
      "second.js": look("second"),
    });
    imageOf(outcome);
    const seen = lines.filter((line) => /^ +(?:first|second) /.test(line)).map((line) => line.trim());
    assert.deepEqual(seen, ["first true", "second false"], lines.join("\n"));
  });

  it("drops links of the source that point out of it, names them all and goes on", async () => {
    const source = () => Readable.from([tarWithLinks({ passwords: "/etc/passwd", "up/er": "../../x", self: "." })]);
    const { outcome, lines } = await attempt(test.builder, {}, { source });
    assert.equal((await visit(test, imageOf(outcome))).status, 200);
    const at = lines.findIndex((line) => line.startsWith("-----> Dropped symbolic links"));
    assert.deepEqual(lines.slice(at + 1, at + 3), ["       passwords", "       up/er"]);
    assert.ok(!lines.includes("       self"));
  });

  it("leaves no program that would run as its owner, and may leave pipes and chains of links", async () => {
    const made = [
      "cp /bin/true tool; chmod 6755 tool; mkdir group; chmod 2777 group; mkfifo pipe",
      "ln -s l1 l0; for i in $(seq 1 3000); do ln -s l$((i + 1)) l$i; done",
    ].join("; ");
    const files = { "package.json": JSON.stringify({ scripts: { build: made, start: "node ." } }) };
    const { image_ref } = imageOf((await attempt(test.builder, files)).outcome);
    const folder = join(test.options.releasesDir, "prj_suite", image_ref.slice(7), "app");
    const modes = await Promise.all(
      ["tool", "group"].map(async (name) => (await stat(join(folder, name))).mode & 0o7777),
    );
    assert.deepEqual(modes, [0o755, 0o777]);
  });

  it("ends at its time limit also while it is published", async () => {
    const content = `for (let i = 0; i < 40; i += 1) require("fs").writeFileSync("f" + i, Buffer.alloc(50e6, i))`;
    const files = { "package.json": JSON.stringify({ scripts: { build: "node build.js", start: "node ." } }) };
    const limits = { memoryBytes: 1024 ** 3, processes: 64, timeoutMs: 2500, silenceMs: 60_000 };
    const { outcome } = await attempt(test.builder, { ...files, "build.js": content }, { limits });
    assert.ok(outcome.outcome === "failed" && outcome.failure.code === "build_timeout", JSON.stringify(outcome));
  });

  it("that a crash interrupted leaves nothing once the builder starts again", async () => {
    // The first builder still removes what earlier builds left.
    await test.builder.settle();
    await mkdir(join(test.options.buildsDir, "bld_crashed/app"), { recursive: true });
    const again = await createProcessBuilder(test.options);
    await again.settle();
    assert.equal(await filesIn(test.options.buildsDir), 0);
    imageOf((await attempt(again, { "index.html": "x" })).outcome);
  });
});

/** Counts files and folders, without the empty trash folder. */
async function filesIn(folder: string): Promise<number> {
  return (await readdir(folder, { recursive: true })).filter((name) => name !== ".trash").length;
}

async function sleeping(seconds: string): Promise<boolean> {
  for (const pid of await readdir("/proc")) {
    if (!/^\d+$/.test(pid)) continue;
    const line = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    if (line === `sleep\0${seconds}\0`) return true;
  }
  return false;
}
