import type { BerthFile } from "../../contract/berth-file.ts";
import type { BuildCommands } from "../../ports/builder.ts";
import type { Failure } from "../../ports/failure.ts";

type Said = Partial<Record<string, unknown>>;

/** The project's own settings for its source; null: not set. */
interface OwnSettings {
  readonly root: string | null;
  readonly port: number | null;
  readonly health_path: string | null;
}

/** Returns the project's settings that override the file's. */
export function winning({ root, port, health_path }: OwnSettings): Said {
  return Object.fromEntries(Object.entries({ root, port, health_path }).filter(([, value]) => value !== null));
}

export function overruled(own: OwnSettings, file: Said) {
  return Object.entries(winning(own)).flatMap(([setting, value]) =>
    file[setting] === undefined || file[setting] === value
      ? []
      : [{ setting, used: shown(value), in_file: shown(file[setting]) }],
  );
}

/** Returns what a builder must know of the project's settings and of its berth.json. */
export function buildCommandsOf(
  { port }: Pick<OwnSettings, "port">,
  { file, member }: { readonly file: BerthFile | null; readonly member: string | undefined },
): BuildCommands {
  const { build, start, release, processes, dockerfile, target, storage, lfs } = file ?? {};
  return { build, start, release, processes, dockerfile, target, storage, lfs, member, port: port ?? file?.port };
}

const shown = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

export function invalidFile(problems: readonly string[]): Failure {
  const [first = "berth.json is invalid.", ...rest] = problems;
  return {
    stage: "detect",
    code: "berth_file_invalid",
    summary: first,
    hint: [...rest.slice(0, 5), "GET /v1/berth.schema.json returns its schema."].join(" "),
    log_tail: [],
  };
}

export function missingFolder(root: string): Failure {
  return {
    stage: "detect",
    code: "root_missing",
    summary: `The commit has no folder ${root}.`,
    hint: "Correct `root` in berth.json, or the project's setting: `berth projects settings --root <folder>`.",
    log_tail: [],
  };
}
