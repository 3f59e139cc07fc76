import { readSourceSettings, type DeploymentSettings, type TakenBuild } from "../../features/builds/builds.ts";
import type { BuildCommands } from "../../ports/builder.ts";
import type { Failure } from "../../ports/failure.ts";
import type { BuildLog } from "../build-log.ts";
import type { Platform } from "../platform.ts";

export interface PreparedSource {
  /** Empty: the whole repository. */
  readonly root: string;
  readonly commands: BuildCommands;
  readonly settings: DeploymentSettings;
}

/** Reads the commit's berth.json and writes into the log what it says; a failure when it cannot be used. */
export async function prepareSource(
  { ports }: Pick<Platform, "ports">,
  build: TakenBuild,
  log: BuildLog,
): Promise<PreparedSource | Failure> {
  const { repositories } = ports;
  const read = await readSourceSettings(repositories, build);
  if (read.outcome === "invalid") return invalidFile(read.problems);
  const { file, root, path } = read;
  if (root !== "" && (await repositories.files(build.project_id, build.commit, 1, `${root}/`)).length === 0)
    return missingFolder(root);
  const { build: buildCommand, start, release, processes, port, health_path, crons } = file ?? {};
  if (file !== null) {
    log.step(`Reading ${path}`);
    for (const line of describe({ ...file, ...winning(build) })) log.detail(line);
  }
  for (const line of overruled(build, file ?? {})) log.detail(line);
  if (root !== "") log.step(`Building the folder ${root}`);
  return { root, commands: { build: buildCommand, start, release, processes }, settings: { port, health_path, crons } };
}

type Said = Partial<Record<string, unknown>>;

/** Settings of the project that are used instead of the file's. */
function winning({ root, port, health_path }: TakenBuild): Said {
  return Object.fromEntries(Object.entries({ root, port, health_path }).filter(([, value]) => value !== null));
}

function overruled(build: TakenBuild, file: Said): string[] {
  return Object.entries(winning(build)).flatMap(([name, value]) =>
    file[name] === undefined || file[name] === value
      ? []
      : [`${name} is set to ${String(value)} for the project; that of berth.json is not used`],
  );
}

const shownFields = ["root", "build", "start", "release", "port", "health_path"];

function describe(file: Said): string[] {
  const processes = Object.entries((file["processes"] ?? {}) as Record<string, string>);
  const crons = (file["crons"] ?? []) as readonly { schedule: string; path: string }[];
  return [
    ...shownFields.flatMap((name) => (file[name] === undefined ? [] : [`${name}: ${file[name] as string | number}`])),
    ...processes.map(([type, command]) => `process ${type}: ${command}`),
    ...crons.map(({ schedule, path }) => `cron ${schedule} ${path}`),
  ];
}

function invalidFile(problems: readonly string[]): Failure {
  const [first = "berth.json cannot be read.", ...rest] = problems;
  return {
    stage: "detect",
    code: "berth_file_invalid",
    summary: first,
    hint: [...rest.slice(0, 5), "GET /v1/berth.schema.json is its schema."].join(" "),
    log_tail: [],
  };
}

function missingFolder(root: string): Failure {
  return {
    stage: "detect",
    code: "root_missing",
    summary: `The commit has no folder ${root}.`,
    hint: "Correct `root` in berth.json, or the project's setting: `berth projects settings --root <folder>`.",
    log_tail: [],
  };
}
