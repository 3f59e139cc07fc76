import type { Detected } from "../detection/detect.ts";
import { BuildRefused } from "../detection/failures.ts";
import type { BuildPlan, BuiltFiles, Start } from "../detection/plan.ts";
import { fileOf } from "../detection/procfile.ts";
import type { BuildLog } from "./build-log.ts";

interface Chosen {
  readonly detected: Detected;
  readonly plan: BuildPlan;
  /** The files after the build. */
  readonly files: BuiltFiles;
}

/** Decides how the web process starts. Null when only other process types run. */
export function chooseStart(log: BuildLog, { detected, plan, files }: Chosen): Start | null {
  const { procfile } = detected;
  if (procfile.web !== null) return { how: "command", command: procfile.web, because: "the Procfile" };
  const start = startBesideOthers(plan, files, Object.values(procfile.others));
  if (start === null) {
    log.detail("There is no web process: the application gets no requests");
    return null;
  }
  log.step(
    start.how === "static"
      ? `Serving ${start.folder === "." ? "the files" : `${start.folder}/`} as a static site`
      : `Starting with: ${start.command}`,
  );
  log.detail(`because of ${start.because}`);
  return start;
}

/** Decides how the web process starts beside other process types: not by a program that belongs to one of them. Null: nothing else starts. */
function startBesideOthers(plan: BuildPlan, files: BuiltFiles, others: readonly string[]): Start | null {
  if (others.length === 0) return plan.start(files);
  try {
    const start = plan.start(files);
    const file = start.how === "command" ? fileOf(start.command) : null;
    return file !== null && others.some((command) => fileOf(command) === file) ? null : start;
  } catch (error) {
    if (error instanceof BuildRefused && error.code === "no_start_command") return null;
    throw error;
  }
}

/** Returns whether the image needs the whole application, not just the files of a static site. */
export function needsTree({ procfile }: Detected): boolean {
  return procfile.release !== null || Object.keys(procfile.others).length > 0;
}

/** Returns whether the start command depends on files that only the build creates. */
export function makesWhatStarts({ kind, build, install }: BuildPlan): boolean {
  return kind === "java" || (kind === "node" && (build.length > 0 || (install?.again ?? []).length > 0));
}
