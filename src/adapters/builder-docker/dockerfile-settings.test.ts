import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import { withoutDocker } from "../../../test/support/docker-engine.ts";
import { testFolder } from "../../../test/support/test-folder.ts";
import { newId } from "../../kit/ids.ts";
import { attempt, imageOf, tarOfFiles, type SourceFiles } from "../../ports/builder.suite.ts";
import type { BuildCommands, BuildRequest } from "../../ports/builder.ts";
import { imageLabels, type ContainerManifest } from "../../ports/image-labels.ts";
import { evaluateBuild } from "./evaluate-build.ts";
import { describeImage, exposedPort } from "./image-notes.ts";
import { findImage, type EngineImage } from "./move-image.ts";
import { makeTestDockerBuilder, type TestDockerBuilder } from "../../../test/support/docker-builder.ts";

// Drawn with other container files: what a runtime and a builder promise is shown by those of processes in every run.

describe("what berth.json says beside a Dockerfile", { skip: withoutDocker }, () => {
  let test: TestDockerBuilder;
  before(async () => (test = await makeTestDockerBuilder({ provided: ["debian"] })));
  after(() => test.close());

  const build = (files: SourceFiles, commands: BuildCommands = {}, request: Partial<BuildRequest> = {}) =>
    attempt(test.builder, files, { ...request, commands });
  const failureOf = async (pending: ReturnType<typeof build>) => {
    const { outcome } = await pending;
    assert.ok(outcome.outcome === "failed", JSON.stringify(outcome));
    return outcome.failure;
  };

  it("start, release, processes, build and storage are honoured, by the plan too, and win over a Procfile", async () => {
    const Dockerfile = `FROM ${test.images.debian}\nWORKDIR /app\nCOPY . .\nENTRYPOINT ["/bin/echo", "entry point"]\nUSER 1000\n`;
    const files = { Dockerfile, Procfile: "web: from procfile\nworker: old\n", ".keep": "" };
    const commands = {
      ...{ start: "cat /tmp/made", release: "migrate", processes: { worker: "work" }, storage: "/data", port: 4567 },
      build: 'echo "made of $COLOUR" >/tmp/made',
    };
    const { outcome, lines } = await build(files, commands, { env: { COLOUR: "green" } });
    const image = imageOf(outcome);
    assert.deepEqual(
      [image.web_command, image.release_command, image.processes],
      ["cat /tmp/made", "migrate", { worker: "work" }],
    );
    const labels = (await findImage(test.runEngine.api, image.image_ref))?.Config.Labels ?? {};
    assert.equal((JSON.parse(labels[imageLabels.manifest] ?? "{}") as ContainerManifest).storage, "/data");
    assert.equal((await runIn(test, image.image_ref, "cat /tmp/made")).trim(), "made of green");
    assert.match(lines.join("\n"), /ENTRYPOINT \/bin\/echo 'entry point' does not run before the commands/);
    const request = { org_id: "org_x", project_id: "prj_x", commands, signal: new AbortController().signal };
    const planned = await test.builder.plan({ ...request, source: () => Readable.from([tarOfFiles(files)]) });
    assert.ok(planned.outcome === "planned", JSON.stringify(planned));
    const { web, processes, release_command: release, steps } = planned.plan;
    assert.deepEqual([web?.command, processes, release], ["cat /tmp/made", { worker: "work" }, "migrate"]);
    assert.deepEqual(
      steps.map(({ command }) => command),
      ["Dockerfile", commands.build],
    );
    const changed = await build(files, commands, { env: { COLOUR: "red" } });
    assert.equal((await runIn(test, imageOf(changed.outcome).image_ref, "cat /tmp/made")).trim(), "made of red");
  });

  it("a Dockerfile elsewhere and one of its stages are built; what is missing is named", async () => {
    const from = `FROM ${test.images.debian}`;
    const text = `${from} AS Base\nWORKDIR /app\nCOPY said .\nCMD ["cat", "said"]\nFROM base\nRUN exit 3\n`;
    const files = { "docker/app.Dockerfile": text, said: "of the context\n", ".dockerignore": "x" };
    const dockerfile = "docker/app.Dockerfile";
    for (const more of [{}, { build: "echo and more >>said" }]) {
      const { outcome } = await build(files, { dockerfile, target: "base", ...more });
      const said = await runIn(test, imageOf(outcome).image_ref, "cat said");
      assert.equal(said.replaceAll("\r", ""), `of the context\n${"build" in more ? "and more\n" : ""}`);
    }
    const target = await failureOf(build(files, { dockerfile, target: "bsae" }));
    assert.match(target.summary, /`target` is bsae, which is no stage of the Dockerfile\. Its stages: base\./);
    const missing = await failureOf(build(files, { dockerfile: "docker/Dockerfile" }));
    assert.match(missing.summary, /names the Dockerfile docker\/Dockerfile, which is not in the repository/);
    const unset = await failureOf(build(files));
    assert.equal(unset.code, "nothing_to_run");
    assert.match(`${unset.summary} ${unset.hint}`, /docker\/app\.Dockerfile.*"dockerfile": "docker\/app\.Dockerfile"/);
    const beside = await build({
      ...files,
      "index.html": "x",
      "compose.yaml": "services:\n  db:\n    image: postgres\n",
    });
    assert.match(beside.lines.join("\n"), /"dockerfile": "docker\/app\.Dockerfile"/);
    assert.match(beside.lines.join("\n"), /compose\.yaml is not used.*db \(postgres\)/s);
  });

  it("a Dockerfile that .dockerignore names is not copied, and changing it or a file's time keeps what was built", async () => {
    const project_id = newId("prj");
    const text = `FROM ${test.images.debian}\nWORKDIR /app\nCOPY . .\nRUN ls -a >listed && cat /proc/sys/kernel/random/uuid >made\n`;
    const said = async (more: string, said: string) => {
      const files = { Dockerfile: `${text}${more}`, ".dockerignore": "Dockerfile\n.dockerignore\n", said };
      const { outcome } = await build(files, {}, { project_id });
      return runIn(test, imageOf(outcome).image_ref, "cat listed said made");
    };
    const first = await said('CMD ["one"]\n', "first\n");
    assert.match(first, /^\.\r?\n\.\.\r?\nlisted\r?\nsaid\r?\nfirst/);
    assert.equal(await said('CMD ["two"]\n', "first\n"), first);
    assert.match(await said('CMD ["two"]\n', "other\n"), /other/);
  });

  it("the commands of a build reach its project's database at 127.0.0.1, and no other build's do", async () => {
    const host = testFolder("database-of-build");
    const port = 5439;
    const database = createServer((socket) => socket.end("said by the database\n"));
    await once(database.listen(join(host, `.s.PGSQL.${port}`)), "listening");
    try {
      const Dockerfile = `FROM ${test.images.debian}\nRUN busybox nc 127.0.0.1 ${port}\nCMD ["sh"]\n`;
      const reach = { reach: [{ host, port }] };
      const [own, other] = await Promise.all([
        build({ Dockerfile }, {}, { ...reach, project_id: "prj_reaches" }),
        build({ Dockerfile }, {}, { project_id: "prj_other" }),
      ]);
      assert.ok(
        own.lines.some((line) => line.includes("said by the database")),
        own.lines.join("\n"),
      );
      assert.equal(other.outcome.outcome, "failed");
      assert.match(other.lines.join("\n"), /refused/);
    } finally {
      database.close();
    }
  });

  it("a word that is no stage, and a flag newer than the engine, are named as that", async () => {
    const lines = (text: string) => build({ Dockerfile: `FROM ${test.images.debian} AS made\n${text}\nCMD ["sh"]\n` });
    const typo = await failureOf(lines("COPY --from=mdae /x /x"));
    assert.match(typo.summary, /`mdae` is no stage of the Dockerfile \(its stages: made\)/);
    assert.match(typo.hint, /FROM … AS mdae/);
    for (const [text, flag] of [
      ["RUN --network=none true", "network"],
      ["RUN --mount=type=secret,id=A,env=A true", "env"],
      ["COPY --exclude=x . .", "exclude"],
    ] as const) {
      const failure = await failureOf(lines(text));
      assert.match(failure.summary, new RegExp(`Docker engine, \\d+\\.\\d+.*does not know \`${flag}`), failure.summary);
      assert.doesNotMatch(failure.hint, /docker build/);
    }
  });
});

const imageWith = (Config: Partial<EngineImage["Config"]>): EngineImage => ({
  ...{ Id: "sha256:0", Size: 0, Architecture: "", Os: "", RootFS: {} },
  Config: { Entrypoint: null, Cmd: ["x"], ...Config },
});
const ports = (...numbers: number[]) => ({
  ExposedPorts: Object.fromEntries(numbers.map((port) => [`${port}/tcp`, {}])),
});
const nothing = { web: null, release: null, others: {} };

it("of several ports that EXPOSE names, requests go to the lowest that is not known for another protocol", () => {
  assert.equal(exposedPort(imageWith(ports(1025, 8025))), 8025);
  assert.equal(exposedPort(imageWith(ports(443, 8080, 9000))), 8080);
  assert.equal(exposedPort(imageWith(ports(5432))), 5432);
  assert.equal(exposedPort(imageWith({ ExposedPorts: { "53/udp": {} } })), undefined);
  assert.deepEqual(describeImage(imageWith(ports(1025, 8025)), nothing, {}), [
    "EXPOSE: requests go to port 8025 (EXPOSE also names 1025), unless the project or berth.json sets another",
  ]);
});

it("a push says which port is used if berth.json sets one, that ENTRYPOINT does not run, and that a VOLUME does not last", () => {
  const image = imageWith({ ...ports(8080), Entrypoint: ["/init"], Volumes: { "/data": {}, "/kept": {} } });
  assert.deepEqual(describeImage(image, { ...nothing, web: "serve" }, { port: 4567, storage: "/kept" }), [
    "EXPOSE 8080 is not used: requests go to port 4567, as the project or berth.json says",
    "ENTRYPOINT /init does not run before the commands of the Procfile and berth.json: name it in a command that needs it",
    'VOLUME /data: what is written there is deleted with each replica, also by the next deploy. To keep it: "storage": "/data" in berth.json',
  ]);
  assert.deepEqual(describeImage(imageWith({ ...ports(80), Entrypoint: ["/init"] }), nothing, { port: 80 }), []);
});

it("a disk that was full during a build is told as that, not as a fault of the step", () => {
  const failed = { instruction: "RUN npm ci", error: "exit code: 1", step: undefined, text: "" };
  const message = "write /var/lib/docker/x: no space left on device";
  const limits = { memoryBytes: 1, fileBytes: 1 };
  const judged = { message, failed, read: undefined, limits, engineVersion: "20.10", logins: [] };
  assert.equal(evaluateBuild(judged).code, "disk_full");
});

it("a pull that a registry refuses leads to its login", () => {
  const read = { originalLine: (line: number) => line, stages: [], unknownStages: [] };
  const limits = { memoryBytes: 1, fileBytes: 1 };
  const message = "failed to authorize: rpc error: code = Unknown desc = failed to fetch oauth token: 401 Unauthorized";
  const failed = { instruction: "load metadata for ghcr.io/acme/shop:1.4", error: message, step: undefined, text: "" };
  const hint = (logins: Parameters<typeof evaluateBuild>[0]["logins"]) =>
    evaluateBuild({ message, failed, read, limits, engineVersion: "20.10", logins }).detail.hint ?? "";
  assert.match(hint([]), /`berth registries add ghcr\.io --username NAME --password-stdin`/);
  const login = { host: "ghcr.io", username: "ada", password: "wrong" };
  assert.match(hint([login]), /^ghcr\.io refused the stored login of ada/);
});

/** Returns what a shell command prints in a container of the image. */
async function runIn({ runEngine: { api } }: TestDockerBuilder, image: string, command: string): Promise<string> {
  const body = { Image: image, Tty: true, NetworkDisabled: true, Entrypoint: ["/bin/sh", "-c"], Cmd: [command] };
  const { Id } = await api.call<{ Id: string }>({ method: "POST", path: "/containers/create", body });
  try {
    await api.call({ method: "POST", path: `/containers/${Id}/start` });
    await api.call({ method: "POST", path: `/containers/${Id}/wait` });
    return await text(await api.stream({ path: `/containers/${Id}/logs`, query: { stdout: 1, stderr: 1 } }));
  } finally {
    await api.call({ method: "DELETE", path: `/containers/${Id}`, query: { force: 1 } });
  }
}
