import { unlessStatus } from "../../kit/docker-api.ts";
import { until } from "../../kit/until.ts";
import type { InstanceKey, Workload } from "../../ports/runtime.ts";
import { appBody } from "../../containers/container-bodies.ts";
import { labelsOf, labels, containerName, uidOf } from "../../containers/settings.ts";
import { appTree, commandOf, foldersFile, openImage } from "../../containers/image-trees.ts";
import { serverFolders } from "../../containers/server-folders.ts";
import { readResolvers } from "../../sandbox/resolvers.ts";
import type { Guard } from "./guard.ts";
import { registeredImage } from "./image-registry.ts";
import { filesOf, attemptSpec } from "./attempt-spec.ts";
import * as swarmApi from "./swarm-api.ts";
import { swarmFile } from "./swarm-files.ts";
import { openOverlay } from "./swarm-networks.ts";
import type { SwarmContext } from "./settings.ts";

/** Includes the time a machine needs to pull the whole image. */
const startMs = 300_000;
const guardMs = 60_000;
const settleMs = 5000;

/** Creates the service of an attempt and waits until its application runs. On failure it removes the service. */
export async function startAttempt(
  context: SwarmContext,
  guard: Guard,
  { workload, key }: { readonly workload: Workload; readonly key: InstanceKey },
): Promise<void> {
  const name = containerName(context.tag, key);
  try {
    const refusing = await createAttempt(context, guard, { workload, key, name, without: null });
    const problem = await awaitStarted(context, name);
    if (problem === undefined) return;
    // Tries once more: the registry may have lost the image, or the machine may be broken.
    await removeAttempt(context, name);
    await createAttempt(context, guard, { workload, key, name, without: refusing });
    const again = await awaitStarted(context, name);
    if (again !== undefined) throw new Error(`a machine refused to start ${name}: ${again}`);
  } catch (fault) {
    await removeAttempt(context, name).catch(() => {});
    throw fault;
  }
}

export async function removeAttempt({ managers }: Pick<SwarmContext, "managers">, name: string): Promise<void> {
  await unlessStatus(managers.call({ method: "DELETE", path: `/services/${name}` }), 404);
}

interface Creation {
  readonly workload: Workload;
  readonly key: InstanceKey;
  readonly name: string;
  /** The machine that refused the first try. If set, the image is pushed again and another machine is preferred. */
  readonly without: string | null;
}

/** Creates the service and resolves with the machine chosen for it. */
async function createAttempt(context: SwarmContext, guard: Guard, creation: Creation): Promise<string> {
  const { workload, key, name, without } = creation;
  const { project_id, image_ref } = workload;
  const opened = await context.recall(`image ${project_id} ${image_ref}`, () => openImage(context, workload));
  const command = commandOf(opened, workload);
  const [image, tree, folders, engine, network] = await Promise.all([
    context.runExclusive(`push ${image_ref}`, () =>
      context.recall(`pushed ${project_id} ${image_ref}`, () =>
        registeredImage(context, workload, { again: without !== null }),
      ),
    ),
    appTree(context, workload, opened),
    serverFolders(context, workload, foldersFile(context, workload)),
    context.engine(),
    openOverlay(context, workload.project_number),
  ]);
  const body = appBody({
    ...{ workload, image: opened, command, folders, network: "", volumes: [], storageDir: null, ociRuntime: null },
    tree: tree === null ? null : { ...tree, folder: null },
    uid: uidOf(context.options, workload),
    labels: labelsOf(context.tag, "app", workload, key),
    certificates: context.certificates,
    processors: engine.processors,
  });
  const files = await Promise.all(filesOf(body).map((file) => swarmFile(context, file)));
  const guarded = await awaitGuarded(guard);
  return context.runExclusive("placement", async () => {
    const machine = await awaitMachine(context, workload.id, { guarded, without });
    const spec = attemptSpec(body, {
      ...{ name, image, files, network, machine, port: workload.port },
      nameServers: readResolvers().addresses,
      labels: { ...body.Labels, [swarmApi.machineLabel]: machine },
    });
    const headers = { "x-registry-auth": context.registry.authHeader };
    await unlessStatus(context.managers.call({ method: "POST", path: "/services/create", body: spec, headers }), 409);
    return machine;
  });
}

/** Chooses the machine. Waits for machines that are `unknown` after a change of leaders, because they are about to be ready. */
export async function awaitMachine(
  context: SwarmContext,
  workloadId: string,
  limits: { readonly guarded: ReadonlySet<string>; readonly without: string | null },
): Promise<string> {
  const read = () => Promise.all([swarmApi.listNodes(context), swarmApi.listAttempts(context)]);
  const choose = ([nodes, services]: Awaited<ReturnType<typeof read>>) =>
    chooseMachine(workloadId, nodes, { ...limits, services });
  const settled = async () => {
    const found = await read();
    const isUnsettled = found[0].some((node) => node.Status.State === "unknown" && !swarmApi.isDown(node));
    return isUnsettled ? undefined : choose(found);
  };
  return (await until(settled, { timeoutMs: settleMs, firstMs: 50, atMostMs: 250 })) ?? choose(await read());
}

/** Waits for one guarded machine, since the first may still be loading its rules. */
async function awaitGuarded(guard: Guard): Promise<ReadonlySet<string>> {
  const some = async () => {
    const machines = await guard.machines();
    return machines.size > 0 ? machines : undefined;
  };
  return (await until(some, { timeoutMs: guardMs, firstMs: 100, atMostMs: 1000 })) ?? new Set();
}

const underWay = new Set(["new", "allocated", "pending", "assigned", "accepted", "preparing", "ready"]);

/** Resolves once the application has started, or with the reason if its machine refused to start it or was lost meanwhile. */
export async function awaitStarted(context: SwarmContext, name: string): Promise<string | undefined> {
  const outcome = async (): Promise<{ readonly problem?: string } | undefined> => {
    const [task] = (await swarmApi.listTasks(context, name)).toSorted((one, other) =>
      one.CreatedAt.localeCompare(other.CreatedAt),
    );
    if (task === undefined) return undefined;
    if (isRefused(task)) return { problem: task.Status.Err ?? "rejected" };
    if (!underWay.has(task.Status.State) && !lacksPort(task)) return {};
    return (await swarmApi.isLost(context, task.NodeID)) ? { problem: "its machine is down" } : undefined;
  };
  const started = await until(outcome, { timeoutMs: startMs, firstMs: 50, atMostMs: 250 });
  if (started === undefined) throw new Error(`no machine started ${name} within ${startMs / 1000} s`);
  return started.problem;
}

/** Returns whether the machine refused the task before the application started. Of a `failed` task, only the message shows it. */
function isRefused({ Status: { State: state, Err: said = "" } }: swarmApi.SwarmTask): boolean {
  return state === "rejected" || (state === "failed" && said.startsWith("starting container failed"));
}

/** A task is starting a moment before its published port is known. */
function lacksPort({ Status: status }: swarmApi.SwarmTask): boolean {
  return status.State === "starting";
}

interface Surroundings {
  readonly services: readonly swarmApi.SwarmAttempt[];
  readonly guarded: ReadonlySet<string>;
  /** The machine that refused this replica. */
  readonly without?: string | null;
}

/**
 * Chooses the machine for another replica of a workload: among ready, active and guarded machines, the one with the fewest replicas of it,
 * then with the fewest of all. A machine that refused this replica (`without`) comes last. Throws if there is none. The rules on `guarded`
 * machines close the operator's networks to containers.
 */
export function chooseMachine(
  workloadId: string,
  nodes: readonly swarmApi.SwarmNode[],
  { services, guarded, without = null }: Surroundings,
): string {
  const fit = nodes.filter(
    ({ ID, Spec: spec, Status: status }) =>
      status.State === "ready" && spec.Availability === "active" && guarded.has(ID),
  );
  const load = (id: string) => {
    const here = services.filter(({ Spec: spec }) => spec.Labels[swarmApi.machineLabel] === id);
    return [here.filter(({ Spec: spec }) => spec.Labels[labels.workload] === workloadId).length, here.length] as const;
  };
  const [best] = fit
    .map(({ ID: id }) => ({ id, load: load(id) }))
    .toSorted(
      (one, other) =>
        Number(one.id === without) - Number(other.id === without) ||
        one.load[0] - other.load[0] ||
        one.load[1] - other.load[1],
    );
  if (best === undefined)
    throw new Error(
      `none of the swarm's ${nodes.length} machines takes replicas: each is down, drained or not guarded`,
    );
  return best.id;
}
