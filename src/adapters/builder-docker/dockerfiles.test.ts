import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { getPriority, networkInterfaces } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import { runsAll } from "../../../test/support/draw-cases.ts";
import { withoutDocker } from "../../../test/support/docker-engine.ts";
import { openDockerApi } from "../../kit/docker-api.ts";
import { run } from "../../kit/exec.ts";
import { newId } from "../../kit/ids.ts";
import { runFolder } from "../../kit/run-folder.ts";
import { until } from "../../kit/until.ts";
import { attempt, imageOf, type SourceFiles } from "../../ports/builder.suite.ts";
import type { BuildRequest } from "../../ports/builder.ts";
import { createDockerBuilder } from "./docker-builder.ts";
import { layerArchive } from "./layer-archive.ts";
import { findImage } from "./move-image.ts";
import { makeTestDockerBuilder, type TestImage, type TestDockerBuilder } from "../../../test/support/docker-builder.ts";
import { eventually, guardMs } from "../../../test/support/eventually.ts";

// Drawn with other container files: what a runtime and a builder promise is shown by those of processes in every run.

type Language = Exclude<TestImage, "debian" | "node">;

/** Sources without a Dockerfile, and the output of their image. */
const applications: Readonly<Record<Language, { readonly kind: string; readonly files: SourceFiles }>> = {
  python: {
    kind: "python",
    files: {
      "requirements.txt": "idna==3.10\n",
      Procfile: "web: python app.py\n",
      "app.py": 'import idna\nprint("said by", idna.encode("bücher.example").decode())\n',
    },
  },
  ruby: {
    kind: "ruby",
    files: {
      Gemfile: 'source "https://rubygems.org"\n',
      "Gemfile.lock": "GEM\n  remote: https://rubygems.org/\n  specs:\n\nPLATFORMS\n  ruby\n\nDEPENDENCIES\n",
      Procfile: "web: bundle exec ruby app.rb\n",
      "app.rb": 'puts "said by xn--bcher-kva.example"\n',
    },
  },
  php: {
    kind: "php",
    files: {
      "composer.json": JSON.stringify({ require: {}, autoload: { files: ["said.php"] } }),
      Procfile: "web: php app.php\n",
      "said.php": '<?php function said() { return "said by xn--bcher-kva.example\n"; }\n',
      "app.php": '<?php require __DIR__ . "/vendor/autoload.php"; echo said();\n',
    },
  },
  golang: {
    kind: "go",
    files: {
      "go.mod": "module example.com/app\n\ngo 1.19\n",
      "main.go": 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println("said by", "xn--bcher-kva.example") }\n',
    },
  },
};
// If the other parent images are missing, they take minutes to create and long to copy between engines.
const languages = runsAll ? (Object.keys(applications) as Language[]) : (["python"] as const);

/** An image that a test makes. */
const trigger = "with-trigger:1";

describe("Dockerfiles", { skip: withoutDocker }, () => {
  let test: TestDockerBuilder;
  before(async () => {
    const provided = ["debian", "node", ...languages] as const;
    // Small, because the tests that fill it write all of it.
    test = await makeTestDockerBuilder({ provided, sharedImages: [trigger], buildDiskBytes: 384 * 1024 ** 2 });
  });
  after(() => test.close());

  const build = (files: SourceFiles, request: Partial<BuildRequest> = {}) => attempt(test.builder, files, request);
  /** Builds `FROM debian` and these lines. */
  const lines = (text: string, request: Partial<BuildRequest> = {}) =>
    build({ Dockerfile: `FROM ${test.images.debian}\n${text}\nCMD ["sh"]\n` }, request);
  const failureOf = async (pending: ReturnType<typeof build>) => {
    const { outcome } = await pending;
    assert.ok(outcome.outcome === "failed", JSON.stringify(outcome));
    return outcome.failure;
  };

  it("stages, arguments, secrets and ignored files are Docker's own; a second build takes all of it from the cache", async () => {
    const Dockerfile = [
      ...["# syntax=docker/dockerfile:1", `FROM ${test.images.debian} AS made`, "ARG COLOUR", "COPY . /src/"],
      "RUN --mount=type=secret,id=TOKEN cp -r /src /out && wc -c </run/secrets/TOKEN >/out/length && echo $COLOUR,$TOKEN >/out/env",
      ...[`FROM ${test.images.debian}`, "WORKDIR /app", "COPY --from=made /out ./"],
      ...["EXPOSE 8080", 'CMD ["cat", "env", "length"]'],
    ].join("\n");
    const files = { Dockerfile, ".dockerignore": "*.log\n", "big.log": "x", Procfile: "worker: sh -c 'ls'\n" };
    const env = { COLOUR: "green", TOKEN: "twelve-bytes" };
    const first = await build(files, { env });
    const image = imageOf(first.outcome);
    assert.deepEqual(
      [image.kind, image.web_command, image.processes],
      ["dockerfile", "cat env length", { worker: "sh -c 'ls'" }],
    );
    assert.equal((await runIn(test, image.image_ref, [])).replaceAll(/\s+/g, " ").trim(), "green, 12");
    assert.doesNotMatch(await runIn(test, image.image_ref, ["ls", "/app"]), /big\.log/);
    assert.doesNotMatch(
      JSON.stringify(await test.runEngine.api.call({ path: `/images/${image.image_ref}/history` })),
      /twelve/,
    );
    const second = await build(files, { env });
    assert.equal(imageOf(second.outcome).image_ref, image.image_ref);
    assert.ok(second.lines.some((line) => line.includes("taken from an earlier build")));
  });

  it("a cached command is not run again, and what it made is in every image, also after images and the cache were removed", async () => {
    const Dockerfile = [
      ...[`FROM ${test.images.debian} AS made`, "RUN cat /proc/sys/kernel/random/uuid >/made"],
      ...[`FROM ${test.images.debian}`, "WORKDIR /app", "COPY first ./", "RUN cp /proc/sys/kernel/random/uuid own"],
      ...["COPY --from=made /made ./", "COPY second ./", "RUN cat second own made >all", 'CMD ["cat", "all"]'],
    ].join("\n");
    const project_id = newId("prj");
    const said = async (second: string) => {
      const image = imageOf((await build({ Dockerfile, first: "x", second: `${second}\n` }, { project_id })).outcome);
      const [text, ...made] = (await runIn(test, image.image_ref, [])).trim().split(/\s+/);
      assert.equal(text, second);
      return { image, made };
    };
    const one = await said("one");
    assert.equal(new Set(one.made).size, 2, JSON.stringify(one.made));
    const two = await said("two");
    assert.deepEqual(two.made, one.made);
    for (const { image } of [one, two])
      await test.runEngine.api.call({ method: "DELETE", path: `/images/${image.image_ref}`, query: { force: 1 } });
    assert.deepEqual((await said("three")).made, one.made);
    const builds = openDockerApi(join(runFolder(test.options.engine.dir), "docker.sock"));
    await builds.call({ method: "POST", path: "/build/prune", query: { all: 1 } });
    const again = await said("three");
    assert.deepEqual([again.made.length, new Set([...again.made, ...one.made]).size], [2, 4]);
    assert.deepEqual((await said("four")).made, again.made);
  });

  it("heredocs run and are copied, whatever the engine's frontend knows of them", async () => {
    const Dockerfile = [
      ...["# syntax=docker/dockerfile:1.4", `FROM ${test.images.debian}`, "WORKDIR /app"],
      ...["RUN <<EOF", "echo first >said", "false", "echo second >>said", "EOF"],
      ...["RUN cat <<ONE >>said", "third", "ONE", "COPY --link <<'TEXT' copied", "costs $1", "TEXT"],
      'CMD ["cat", "said", "copied"]',
    ].join("\n");
    const { outcome } = await build({ Dockerfile });
    const said = await runIn(test, imageOf(outcome).image_ref, []);
    assert.deepEqual(said.trim().split(/\s*\n/), ["first", "second", "third", "costs $1"]);
  });

  it("a failed step is named with what it said, a line that cannot be read with its number", async () => {
    const failed = await failureOf(lines("RUN echo 'Error: no luck today' && exit 3"));
    assert.deepEqual([failed.stage, failed.code], ["build", "dockerfile_step_failed"]);
    assert.match(failed.summary, /ended with exit code 3: Error: no luck today/);
    const unread = await failureOf(lines("RUNN x"));
    assert.equal(unread.code, "dockerfile_invalid");
    assert.match(unread.summary, /Line 2 of the Dockerfile: unknown instruction: RUNN/i);
    assert.equal((await failureOf(lines("COPY missing ."))).code, "dockerfile_step_failed");
  });

  it("no Dockerfile starts from another project's image, by its name or by its id", async () => {
    const theirs = imageOf((await lines("RUN echo secret >/secret", { project_id: "prj_theirs" })).outcome);
    const short = theirs.image_ref.slice(7, 19);
    for (const name of [`berth/prj_theirs:${short}`, theirs.image_ref, short, theirs.image_ref.slice(7)]) {
      const failure = await failureOf(build({ Dockerfile: `FROM ${name}\nCMD ["cat", "/secret"]` }));
      assert.ok(["parent_image_unavailable", "dockerfile_invalid"].includes(failure.code), JSON.stringify(failure));
    }
    const name = `berth/prj_theirs:${short}`;
    for (const text of [
      `COPY --from=${name} /secret /`,
      `RUN --mount=type=bind,from=${name},target=/theirs cat /theirs/secret`,
    ])
      assert.equal((await failureOf(lines(text))).code, "parent_image_unavailable", text);
  });

  it("no image has labels that Berth reads of containers; those of images are replaced", async () => {
    const failure = await failureOf(lines("LABEL berth.workload=dep_theirs"));
    assert.equal(failure.code, "dockerfile_invalid");
    assert.match(failure.summary, /label berth\.workload/);
    const { image_ref: ref } = imageOf((await lines("LABEL berth.project=prj_theirs colour=green")).outcome);
    const { Labels: found } = (await findImage(test.runEngine.api, ref))?.Config ?? {};
    assert.equal(found?.["colour"], "green");
    assert.notEqual(found?.["berth.project"], "prj_theirs");
  });

  it("what projects keep between builds is apart, whatever ids they choose; a secret is its own project's alone", async () => {
    const caches = "--mount=type=cache,target=/c --mount=type=cache,id=shared,sharing=shared,target=/d";
    const Dockerfile = (word: string) =>
      `FROM ${test.images.debian}\nRUN ${caches} for kept in /c /d; do echo ${word} >>$kept/words; cat $kept/words; done >/words\nCMD ["cat", "/words"]`;
    const words = async (project_id: string, word: string) => {
      const { outcome } = await build({ Dockerfile: Dockerfile(word) }, { project_id });
      return (await runIn(test, imageOf(outcome).image_ref, [])).trim().split(/\s+/);
    };
    const [one, other] = [newId("prj"), newId("prj")];
    await words(one, "first");
    assert.deepEqual(await words(one, "second"), ["first", "second", "first", "second"]);
    assert.deepEqual(await words(other, "third"), ["third", "third"]);
    const secret = "RUN --mount=type=secret,id=TOKEN,required=true cat /run/secrets/TOKEN >/dev/null";
    imageOf((await lines(secret, { project_id: one, env: { TOKEN: "of one" } })).outcome);
    assert.equal((await failureOf(lines(secret, { project_id: other }))).code, "dockerfile_step_failed");
  });

  it("what a base image's ONBUILD runs is the build's own: its results, its caches, its memory", async () => {
    const withTrigger = async (command: string) => {
      const { api } = test.runEngine;
      const body = { Image: test.images.debian, Cmd: ["true"] };
      const { Id } = await api.call<{ Id: string }>({ method: "POST", path: "/containers/create", body });
      const [repo, tag] = trigger.split(":");
      const query = { container: Id, repo, tag, changes: `ONBUILD RUN ${command}` };
      await api.call({ method: "POST", path: "/commit", query });
      await api.call({ method: "DELETE", path: `/containers/${Id}` });
    };
    const Dockerfile = `FROM ${trigger}\nCMD ["cat", "/made"]`;
    await withTrigger("--mount=type=cache,target=/c cat /proc/sys/kernel/random/uuid >>/c/all && cp /c/all /made");
    const made = async (project_id: string) =>
      runIn(test, imageOf((await build({ Dockerfile }, { project_id })).outcome).image_ref, []);
    const [one, other] = [newId("prj"), newId("prj")];
    const first = await made(one);
    assert.equal(await made(one), first);
    const theirs = await made(other);
    assert.deepEqual([theirs.trim().split("\n").length, theirs === first], [1, false]);
    await withTrigger("dd if=/dev/zero of=/dev/null bs=300M count=1");
    const limits = { processes: 512, timeoutMs: 600_000, silenceMs: 300_000, memoryBytes: 200 * 1024 ** 2 };
    assert.equal((await failureOf(build({ Dockerfile }, { limits }))).code, "build_out_of_memory");
  });

  it("what asks for more than a build gets is refused: privileges, the machine's network, metadata, another frontend", async () => {
    for (const text of ["RUN --security=insecure id", "RUN --network=host id"])
      assert.ok(["dockerfile_invalid", "dockerfile_step_failed"].includes((await failureOf(lines(text))).code), text);
    const metadata = await failureOf(lines("ADD http://169.254.169.254/latest/meta-data /x"));
    assert.match(metadata.summary, /169\.254\.169\.254/);
    const frontend = await failureOf(
      build({ Dockerfile: `# syntax=evil.example/frontend\nFROM ${test.images.debian}` }),
    );
    assert.equal(frontend.code, "dockerfile_syntax_refused");
    for (const text of [
      "RUN --mount=type=bind,source=../../../../../../../etc,target=/x cat /x/shadow",
      "RUN --mount=type=ssh,required=true true",
      "COPY ../../../../../../../etc/shadow /x",
    ])
      assert.equal((await lines(text)).outcome.outcome, "failed", text);
    const mounted = await lines("RUN --mount=type=bind,from=made,source=/,target=/host,rw ls /host/run/docker.sock");
    assert.equal(mounted.outcome.outcome, "failed");
  });

  it("a command reaches neither this machine nor its metadata service", async () => {
    const server = createServer((socket) => socket.end()).listen(0, "0.0.0.0");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const own = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
    const hosts = own.flatMap(({ family, address }) => (family === "IPv4" && address !== "127.0.0.1" ? [address] : []));
    const targets = [...hosts.map((host) => [host, port]), ["169.254.169.254", 80]];
    const { outcome, lines: log } = await build({
      Dockerfile: `FROM ${test.images.node}\nCOPY probe.js /\nRUN node /probe.js\nCMD ["node"]`,
      "probe.js": `const targets = ${JSON.stringify(targets)};${probe}`,
    });
    server.close();
    imageOf(outcome);
    assert.ok(hosts.length > 0 && log.some((line) => line.endsWith("REACHED:")), log.join("\n"));
  });

  it("a command reaches no other build's command", async () => {
    const stop = new AbortController();
    const listening: string[] = [];
    const listener = build(
      {
        Dockerfile: `FROM ${test.images.node}\nCOPY listen.js /\nRUN node /listen.js\nCMD ["node"]`,
        "listen.js": `require("node:net").createServer((socket) => socket.end()).listen(7777, () =>
  console.log("LISTENS", Object.values(require("node:os").networkInterfaces()).flat().find((each) => !each.internal).address));`,
      },
      { project_id: newId("prj"), signal: stop.signal, onLine: (line: string) => void listening.push(line) },
    );
    const found = () => /LISTENS ([\d.]+)/.exec(listening.join("\n"))?.[1];
    const host = await until(async () => found(), { timeoutMs: guardMs });
    assert.ok(host, listening.join("\n"));
    const { outcome, lines: log } = await build({
      Dockerfile: `FROM ${test.images.node}\nCOPY probe.js /\nRUN node /probe.js\nCMD ["node"]`,
      "probe.js": `const targets = ${JSON.stringify([[host, 7777]])};${probe}`,
    });
    stop.abort();
    await listener;
    imageOf(outcome);
    assert.ok(
      log.some((line) => line.endsWith("REACHED:")),
      log.join("\n"),
    );
  });

  it("too much memory, time, silence, output, too many processes or too large a file ends the build alone", async () => {
    const limits = { memoryBytes: 1024 ** 3, processes: 512, timeoutMs: 600_000, silenceMs: 300_000 };
    const hog = `FROM ${test.images.node}\nRUN node -e "const kept = []; for (;;) kept.push(Buffer.alloc(5e7, 1))"\nCMD ["node"]`;
    const little = { limits: { ...limits, memoryBytes: 256 * 1024 ** 2 } };
    assert.equal((await failureOf(build({ Dockerfile: hog }, little))).code, "build_out_of_memory");
    const short = { limits: { ...limits, timeoutMs: 6000 } };
    assert.equal((await failureOf(lines("RUN yes", short))).code, "build_timeout");
    assert.equal(
      (await failureOf(lines("RUN sleep 4321", { limits: { ...limits, silenceMs: 3000 } }))).code,
      "build_silent",
    );
    const bomb = "RUN i=0; while [ $i -lt 200 ]; do sleep 60 & i=$((i+1)); done; echo all started";
    const few = await lines(bomb, { limits: { ...limits, processes: 40 } });
    assert.ok(
      few.outcome.outcome === "failed" && !few.lines.some((line) => line.trim() === "all started"),
      few.lines.join("\n"),
    );
    // The command writes it at no cost, but the engine would read all of it.
    const truncate = "truncate -s 13194139533312 /big";
    // npm ends with an exit code of its own.
    const byNpm = `FROM ${test.images.node}\nCOPY package.json .\nRUN npm pkg set scripts.build="${truncate}" && npm run build\nCMD ["node"]`;
    // One after the other, as a project's builds run: two at once would share a control group.
    const writes = [() => lines(`RUN ${truncate}`), () => build({ Dockerfile: byNpm, "package.json": "{}" })];
    for (const write of writes) {
      const sparse = await failureOf(write());
      assert.equal(sparse.code, "build_output_too_large", JSON.stringify(sparse));
      assert.match(sparse.summary, /wrote a file of more than 1024 MiB/);
    }
    const neighbour = await lines("RUN echo priority $(cut -d' ' -f19 /proc/self/stat)");
    imageOf(neighbour.outcome);
    const priority = `priority ${Math.min(getPriority() + 10, 19)}`;
    assert.ok(
      neighbour.lines.some((line) => line.trim() === priority),
      "a build yields the processors to the control plane",
    );
  });

  it("too much disk ends the build alone, whether its commands write it or the engine copies it", async () => {
    const write = "RUN for i in 1 2 3 4 5 6 7 8; do head -c 100000000 /dev/zero >/file-$i; done; sleep 8765";
    const copies = Array.from({ length: 20 }, (_, index) => `COPY big /copy-${index}\n`).join("");
    const [beside, wrote, copied] = await Promise.all([
      lines("RUN sleep 20; head -c 50000000 /dev/zero >/file", { project_id: newId("prj") }),
      failureOf(lines(write, { project_id: newId("prj") })),
      failureOf(
        build(
          {
            Dockerfile: `FROM ${test.images.debian}\n${copies}RUN sleep 8764\nCMD ["sh"]`,
            big: "x".repeat(50_000_000),
          },
          { project_id: newId("prj") },
        ),
      ),
    ]);
    imageOf(beside.outcome);
    for (const { code, summary } of [wrote, copied]) {
      assert.equal(code, "build_output_too_large", summary);
      assert.match(summary, /took more than 384 MiB of the disk while it ran/);
    }
    assert.ok(await until(() => !isRunning("sleep 8765") || undefined, { timeoutMs: guardMs }));
  });

  it("a source that is too large ends before the engine gets any of it", async () => {
    const options = { ...test.options, buildsDir: `${test.options.buildsDir}-small`, maxSourceBytes: 100_000 };
    const small = await createDockerBuilder({ ...options, engine: { ...options.engine, nodeBin: "/nonexistent" } });
    try {
      const Dockerfile = `FROM ${test.images.debian}\nCOPY . /all\n`;
      const { outcome } = await attempt(small, { Dockerfile, "huge.bin": "x".repeat(200_000) });
      assert.ok(outcome.outcome === "failed" && outcome.failure.code === "source_too_large", JSON.stringify(outcome));
    } finally {
      await small.close();
    }
  });

  it("each build has the memory that is its own, whatever its neighbours have and its Dockerfile says", async () => {
    const take = (count: number) => `RUN dd if=/dev/zero of=/dev/null bs=${count}M count=1`;
    const own = (mib: number) => ({
      processes: 512,
      timeoutMs: 600_000,
      silenceMs: 300_000,
      memoryBytes: mib * 1024 ** 2,
    });
    const [small, large] = await Promise.all([
      failureOf(lines(take(300), { limits: own(200) })),
      lines(take(301), { limits: own(500), project_id: newId("prj") }),
    ]);
    assert.equal(small.code, "build_out_of_memory");
    assert.match(small.summary, /a build has 200 MiB/);
    imageOf(large.outcome);
    // A command cannot hide the owner of its files.
    const hosts = "FROM scratch AS none\nCOPY Dockerfile /hosts\n";
    const hidden = (text: string) => `${hosts}FROM ${test.images.debian}\n${text}\nCMD ["sh"]`;
    const mount = "--mount=type=bind,from=none,source=/hosts,target=/etc/hosts";
    const covered = build({ Dockerfile: hidden(take(300).replace("RUN", `RUN ${mount}`)) }, { limits: own(200) });
    assert.equal((await failureOf(covered)).code, "build_out_of_memory");
  });

  it("knows when the disk of the engine that runs images is short of space", async () => {
    assert.equal(await test.builder.isShortOfSpace(), false);
    const full = await createDockerBuilder({ ...test.options, diskFloorBytes: Number.MAX_SAFE_INTEGER });
    assert.equal(await full.isShortOfSpace(), true);
    await full.close();
  });

  it("an image is given without the layers that are there already, and each that goes is what its digest says", async () => {
    const { api, dir } = test.runEngine;
    const image = await findImage(api, test.images.debian);
    assert.ok(image);
    const archive = async (has: boolean) =>
      Buffer.concat(await Array.fromAsync(layerArchive(join(dir, "data"), image.Id, () => has)));
    assert.ok((await archive(true)).length < 100_000);
    const whole = await archive(false);
    const size = Number.parseInt(whole.toString("latin1", 124, 135), 8);
    const digest = createHash("sha256")
      .update(whole.subarray(512, 512 + size))
      .digest("hex");
    assert.deepEqual(image.RootFS.Layers, [`sha256:${digest}`]);
  });

  it("a cancelled build's command ends", async () => {
    const stop = new AbortController();
    const pending = lines("RUN sleep 8642", { signal: stop.signal });
    assert.ok(await until(() => isRunning("sleep 8642") || undefined, { timeoutMs: guardMs }));
    stop.abort();
    assert.equal((await pending).outcome.outcome, "cancelled");
    assert.ok(await until(() => !isRunning("sleep 8642") || undefined, { timeoutMs: guardMs }));
  });

  for (const language of languages)
    it(`${language}: a source without a Dockerfile is installed, built and started by the image's own command`, async () => {
      const { kind, files } = applications[language];
      const image = imageOf((await build(files)).outcome);
      assert.equal(image.kind, kind);
      const said = await runIn(test, image.image_ref, ["/bin/sh", "-c", image.web_command ?? "false"]);
      assert.equal(said.trim(), "said by xn--bcher-kva.example");
    });

  it("a Node.js application without a Dockerfile is installed and built, and what the build left decides how it starts", async () => {
    const files = {
      "package.json": JSON.stringify({ scripts: { build: "mkdir dist && echo $WORD >dist/index.html" } }),
      "src.txt": "x",
    };
    const { outcome, lines: log } = await build(files, { env: { WORD: "ahoy" } });
    const image = imageOf(outcome);
    assert.equal(image.kind, "static");
    assert.equal((await runIn(test, image.image_ref, ["cat", "/app/site/index.html"])).trim(), "ahoy");
    assert.ok(log.includes("-----> Building: npm run build"), log.join("\n"));
    const changed = await build(files, { env: { WORD: "other" } });
    assert.notEqual(imageOf(changed.outcome).image_ref, image.image_ref);
    const failed = await failureOf(
      build({ "package.json": JSON.stringify({ scripts: { build: "exit 7", start: "x" } }) }),
    );
    assert.deepEqual([failed.stage, failed.code], ["build", "build_script_failed"]);
    assert.match(failed.summary, /`npm run build` ended with exit code 7/);
  });

  // This test is the last one, because it ends the engine that the others use.
  it("layers beyond the engine's limit are given back when it starts", async () => {
    imageOf((await lines("RUN head -c 80000000 /dev/urandom >/layer-of-a-test")).outcome);
    const { engine } = test.options;
    const layers = async () =>
      (await run({ file: "find", args: [engine.dir, "-name", "layer-of-a-test"] })).stdout.split("\n").filter(Boolean);
    assert.ok((await layers()).length > 0);
    await test.builder.close();
    const small = await createDockerBuilder({ ...test.options, engine: { ...engine, cacheBytes: 30 * 1024 ** 2 } });
    try {
      imageOf((await attempt(small, { Dockerfile: `FROM ${test.images.debian}\nCMD ["sh"]\n` })).outcome);
      await eventually(async () => (await layers()).length === 0, "the layer is gone");
    } finally {
      await small.close();
    }
  });
});

const probe = `
const reach = ([host, port]) => new Promise((done) => {
  const socket = require("node:net").connect({ host, port, timeout: 3000 });
  const end = (answer) => { socket.destroy(); done(answer); };
  socket.on("connect", () => end([host])).on("error", () => end([])).on("timeout", () => end([]));
});
Promise.all(targets.map(reach)).then((all) => console.log(("REACHED: " + all.flat()).trim()));
`;

/** Returns whether a process with this command line runs. */
function isRunning(words: string): boolean {
  return readdirSync("/proc").some((name) => {
    try {
      return (
        /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ").startsWith(words)
      );
    } catch {
      return false;
    }
  });
}

/** Returns the output of a command in a container of the image; without words, of the image's own command. */
async function runIn(
  { runEngine: { api } }: TestDockerBuilder,
  image: string,
  command: readonly string[],
): Promise<string> {
  const body = { Image: image, Tty: true, NetworkDisabled: true, ...(command.length > 0 ? { Cmd: command } : {}) };
  const { Id } = await api.call<{ Id: string }>({ method: "POST", path: "/containers/create", body });
  try {
    await api.call({ method: "POST", path: `/containers/${Id}/start` });
    await api.call({ method: "POST", path: `/containers/${Id}/wait` });
    return await text(await api.stream({ path: `/containers/${Id}/logs`, query: { stdout: 1, stderr: 1 } }));
  } finally {
    await api.call({ method: "DELETE", path: `/containers/${Id}`, query: { force: 1 } });
  }
}
