import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { BuildLog } from "../../building/build-log.ts";
import { isPlain } from "../../building/is-plain.ts";
import { sourceWarnings } from "../../building/source-warnings.ts";
import { BuildRefused } from "../../detection/failures.ts";
import { parseProcfile } from "../../detection/procfile.ts";
import type { SourceTree } from "../../detection/source-tree.ts";
import type { Image, PlannedBuild } from "../../ports/builder.ts";
import type { ContainerManifest } from "../../ports/image-labels.ts";
import { dockerfileName, type BuildRun } from "./build-run.ts";
import { cacheScope } from "./cache-scope.ts";
import { heredocsFolder } from "./heredocs.ts";
import { readDockerfile, type Dockerfile } from "./read-dockerfile.ts";
import { readDockerignore, removeIgnored } from "./dockerignore.ts";
import { quoted } from "./generate-dockerfile.ts";
import type { EngineImage } from "./move-image.ts";
import { performBuild } from "./perform-build.ts";
import { keepIfFits, publishImage } from "./publish-image.ts";

/** Builds the image from the source's Dockerfile. */
export async function fromDockerfile(run: BuildRun, tree: SourceTree): Promise<Image> {
  const { log, folder, request } = run;
  const app = join(folder, "app");
  const { web, release, others } = parseProcfile(tree.text("Procfile") ?? "");
  log.step("Dockerfile detected");
  const source = await readFile(join(app, dockerfileName), "utf8");
  const { args: named, notes } = readDockerfile(source);
  for (const note of [...notes, ...sourceWarnings(tree)]) log.detail(note);
  if (web !== null) log.detail(`The web command comes from the Procfile: ${web}`);
  if (isPlain(app, ignoreName, "file"))
    await removeIgnored(app, ignoring(await readFile(join(app, ignoreName), "utf8")));
  const declared = named.filter((name) => request.env[name] !== undefined);
  if (declared.length > 0)
    log.detail(`Variables that ARG names: ${declared.join(", ")}. Their values stay in the image's history.`);
  const scope = await cacheScope(run.scopesDir, request.project_id);
  const args = Object.fromEntries(declared.map((name) => [name, request.env[name] as string]));
  const manifest: ContainerManifest = {
    ...{ format: 1, kind: "dockerfile", web_command: web ?? "the image's own command", uses_own_command: web === null },
    ...{ processes: others, release_command: release },
  };
  const engine = await run.time.race(run.engine(source));
  const dockerfile = readDockerfile(source, engine);
  await writeContext(app, dockerfile);
  const id = await performBuild(run, engine, {
    folder: app,
    args,
    scope,
    manifest,
    originalLine: dockerfile.originalLine,
  });
  const image = await keepIfFits(run, engine, id);
  const own = commandOf(image);
  if (web === null && own === null) throw new BuildRefused("no_start_command", ownCommandMissing);
  const port = exposedPort(image);
  logImageNotes(log, image, port);
  const published = await publishImage(run, engine, { image, manifest: { ...manifest, web_command: web ?? own } });
  return port === undefined ? published : { ...published, port };
}

async function writeContext(app: string, { text, files }: Dockerfile): Promise<void> {
  await writeFile(join(app, dockerfileName), text);
  if (files.length > 0) await rm(join(app, heredocsFolder), { recursive: true, force: true });
  for (const { path, content } of files) {
    await mkdir(dirname(join(app, path)), { recursive: true });
    await writeFile(join(app, path), content, { flag: "wx" });
  }
}

/** Returns what a build from the source's Dockerfile does; null if there is no Dockerfile. */
export async function planDockerfile(app: string, tree: SourceTree): Promise<PlannedBuild | null> {
  if (!isPlain(app, dockerfileName, "file")) return null;
  const { web, release, others } = parseProcfile(tree.text("Procfile") ?? "");
  const { notes } = readDockerfile(await readFile(join(app, dockerfileName), "utf8"));
  return {
    ...{ kind: "dockerfile", name: "Dockerfile", uses_dockerfile: true, tools: [], notes },
    steps: [{ stage: "build", command: dockerfileName }],
    web: { command: web, because: web === null ? "the image's own command" : "the Procfile" },
    ...{ processes: others, release_command: release },
  };
}

const ignoreName = ".dockerignore";

/** Never ignores the Dockerfile, which the build itself needs. */
function ignoring(rules: string): (path: string) => boolean {
  const ignores = readDockerignore(rules);
  return (path) => path !== dockerfileName && ignores(path);
}

const ownCommandMissing = {
  summary: "The image has neither ENTRYPOINT nor CMD.",
  hint: "Add a `CMD` to the Dockerfile, or a Procfile with `web: <command>`.",
};

/** Returns an image's command as a shell line; null if it has none. */
function commandOf({ Config }: EngineImage): string | null {
  const words = [...(Config.Entrypoint ?? []), ...(Config.Cmd ?? [])];
  if (words.length === 0) return null;
  return words.length === 3 && words[0] === "/bin/sh" && words[1] === "-c"
    ? (words[2] as string)
    : words.map(quoted).join(" ");
}

/** Returns the lowest TCP port of EXPOSE. */
function exposedPort({ Config }: EngineImage): number | undefined {
  const ports = Object.keys(Config.ExposedPorts ?? {}).filter((port) => !/\/(?:udp|sctp)$/.test(port));
  return ports.map((port) => Number.parseInt(port, 10)).toSorted((a, b) => a - b)[0];
}

function logImageNotes(log: BuildLog, { Config }: EngineImage, port: number | undefined): void {
  if (port !== undefined)
    log.detail(`EXPOSE: requests go to port ${port}, unless the project or berth.json sets another`);
  const check = Config.Healthcheck?.Test ?? [];
  if (check.length > 0 && check[0] !== "NONE")
    log.detail("HEALTHCHECK decides when a replica is healthy, unless the project or berth.json sets a health path");
  const user = (Config.User ?? "").split(":")[0] ?? "";
  if (!["", "0", "root"].includes(user)) log.detail(`USER ${user}: the process runs under the project's own user id`);
}
