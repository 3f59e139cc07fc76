import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { describeTool } from "../detection/describe-tool.ts";
import { detect, type Detected } from "../detection/detect.ts";
import { BuildRefused, toFailure } from "../detection/failures.ts";
import type { Machine } from "../detection/plan-build.ts";
import { planBuild } from "../detection/plan-build.ts";
import type { BuildPlan, Kind, Start, Step } from "../detection/plan.ts";
import type { SourceTree } from "../detection/source-tree.ts";
import { newId } from "../kit/ids.ts";
import type {
  BuildCommands,
  PlannedBuild,
  PlannedStart,
  PlannedStep,
  PlanOutcome,
  PlanRequest,
} from "../ports/builder.ts";
import { createBuildLog } from "./build-log.ts";
import { chooseStart, makesWhatStarts } from "./choose-start.ts";
import { listedFiles } from "./listed-files.ts";
import { sourceWarnings } from "./source-warnings.ts";
import { unpack } from "./unpack.ts";

export interface Planner {
  /** The folder in which each plan unpacks its source, in a subfolder of its own. */
  readonly folder: string;
  readonly maxSourceBytes: number;
  readonly machineFor: (kind: Kind) => Promise<Machine>;
  /** The default Node.js version of applications. */
  readonly nodeVersion: string;
  /** Plans a source that has its own Dockerfile; null when it has none. */
  readonly planOwn: (app: string, tree: SourceTree, commands?: BuildCommands) => Promise<PlannedBuild | null>;
  /** Default two minutes. */
  readonly timeoutMs?: number;
}

/** Plans a build from the unpacked source, with the same decisions as a build. */
export async function planSource(request: PlanRequest, planner: Planner): Promise<PlanOutcome> {
  const { timeoutMs = 120_000 } = planner;
  const late = AbortSignal.timeout(timeoutMs);
  const signal = AbortSignal.any([request.signal, late]);
  const app = join(planner.folder, newId("bld"));
  try {
    await mkdir(app, { mode: 0o700 });
    const ignoresLfs = request.commands?.lfs === "ignore";
    const unpacking = { source: request.source(), folder: app, maxBytes: planner.maxSourceBytes, signal, ignoresLfs };
    const { tree, droppedLinks } = await unpack({ ...unpacking, uid: process.getuid?.() ?? 0 });
    const plan = (await planner.planOwn(app, tree, request.commands)) ?? (await planTree(request, planner, tree));
    const links = droppedLinks.map((path) => `${path} is a symbolic link out of the repository; it is dropped`);
    return { outcome: "planned", plan: { ...plan, notes: [...plan.notes, ...links, ...sourceWarnings(tree)] } };
  } catch (error) {
    if (request.signal.aborted) return { outcome: "cancelled" };
    const refused = !(error instanceof BuildRefused) && late.aborted ? tookTooLong(timeoutMs) : error;
    if (!(refused instanceof BuildRefused)) throw error;
    return { outcome: "refused", failure: toFailure(refused, [], (text) => text) };
  } finally {
    await rm(app, { recursive: true, force: true });
  }
}

function tookTooLong(timeoutMs: number): BuildRefused {
  return new BuildRefused("build_timeout", {
    stage: "receive",
    summary: `Reading the source for the plan took longer than ${Math.round(timeoutMs / 1000)} s.`,
    hint: "Take large files and folders out of the repository, or try again when the machine is less busy.",
  });
}

async function planTree({ commands }: PlanRequest, planner: Planner, tree: SourceTree): Promise<PlannedBuild> {
  const detected = detect(tree, commands);
  const plan = planBuild(detected, tree, await planner.machineFor(detected.kind));
  return {
    kind: plan.kind,
    name: plan.name,
    uses_dockerfile: false,
    tools: plan.tools.map((wish) => describeTool(wish, planner.nodeVersion)),
    notes: plan.notes,
    steps: stepsOf(plan),
    web: startOf(detected, plan, tree),
    processes: detected.procfile.others,
    release_command: detected.procfile.release,
  };
}

function stepsOf({ install, build, prune }: BuildPlan): readonly PlannedStep[] {
  const named = (stage: PlannedStep["stage"], steps: readonly Step[]) =>
    steps.map(({ args }) => ({
      stage,
      command: args[0] === "sh" && args[1] === "-c" ? (args[2] ?? "") : args.join(" "),
    }));
  return [
    ...named("install", [...(install?.steps ?? []), ...(install?.again ?? [])]),
    ...named("build", build),
    ...named("prune", prune),
  ];
}

const decidedLater: PlannedStart = { command: null, because: "what the build makes" };

function startOf(detected: Detected, plan: BuildPlan, tree: SourceTree): PlannedStart | null {
  const { web } = detected.procfile;
  if (web !== null) return { command: web, because: "the Procfile or berth.json" };
  if (makesWhatStarts(plan)) return decidedLater;
  try {
    const start = chooseStart(
      createBuildLog(() => {}, []),
      { detected, plan, files: listedFiles(tree.paths) },
    );
    return start && { command: describeStart(start), because: start.because };
  } catch (error) {
    const mayCome = error instanceof BuildRefused && error.code === "no_start_command" && plan.build.length > 0;
    if (mayCome) return decidedLater;
    throw error;
  }
}

function describeStart(start: Start): string {
  if (start.how === "command") return start.command;
  return `static files of ${start.folder === "." ? "the repository" : `${start.folder}/`}`;
}
