import * as builds from "../../features/builds/builds.ts";
import type { BuildCommands } from "../../ports/builder.ts";
import type { Failure } from "../../ports/failure.ts";
import type { BuildLog } from "../build-log.ts";
import type { Platform } from "../platform.ts";

export interface PreparedSource {
  /** The folder of the repository to build; empty: the whole repository. */
  readonly folder: string;
  readonly commands: BuildCommands;
  readonly settings: builds.DeploymentSettings;
}

/** Reads the commit's berth.json and logs its settings. Returns a failure if it can't be used. */
export async function prepareSource(
  { ports }: Pick<Platform, "ports">,
  build: builds.TakenBuild,
  log: BuildLog,
): Promise<PreparedSource | Failure> {
  const { repositories } = ports;
  const read = await builds.readSourceSettings(repositories, build);
  if (read.outcome === "invalid") return builds.invalidFile(read.problems);
  const { file, root, folder, member, path } = read;
  if (root !== "" && (await repositories.files(build.project_id, build.commit, 1, { folder: `${root}/` })).length === 0)
    return builds.missingFolder(root);
  const { port, health_path, crons, rehearse } = file ?? {};
  if (file !== null) {
    log.step(`Reading ${path}`);
    for (const line of describe({ ...file, ...builds.winning(build) })) log.detail(line);
  }
  for (const { setting, used } of builds.overruled(build, file ?? {}))
    log.detail(`The project's setting ${setting} is ${used}; the value in berth.json is not used`);
  if (root !== "") log.step(`Building the folder ${root}${member === undefined ? "" : ", in the workspace around it"}`);
  return { folder, commands: builds.buildCommandsOf(build, read), settings: { port, health_path, crons, rehearse } };
}

const shownFields = ["root", "dockerfile", "target", "build", "start", "release", "storage", "port", "health_path"];

function describe(file: Partial<Record<string, unknown>>): string[] {
  const processes = Object.entries((file["processes"] ?? {}) as Record<string, string>);
  const crons = (file["crons"] ?? []) as readonly { schedule: string; path: string }[];
  return [
    ...shownFields.flatMap((name) => (file[name] === undefined ? [] : [`${name}: ${file[name] as string | number}`])),
    ...processes.map(([type, command]) => `process ${type}: ${command}`),
    ...crons.map(({ schedule, path }) => `cron ${schedule} ${path}`),
  ];
}
