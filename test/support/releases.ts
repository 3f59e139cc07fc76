import { randomUUID } from "node:crypto";
import { Readable } from "node:stream";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createDiskLogStore } from "../../src/adapters/log-store-disk/disk-log-store.ts";
import { followBuild } from "../../src/features/builds/follow-build.ts";
import { requestBuild } from "../../src/features/builds/builds.ts";
import { requestDatabase } from "../../src/features/database/database.ts";
import { silentLog } from "../../src/kit/log.ts";
import { formatIdentity, ownIdentity } from "../../src/kit/processes.ts";
import { until } from "../../src/kit/until.ts";
import type { Edge, RouteState, RouteTable } from "../../src/ports/edge.ts";
import type { Instance, Runtime, Workload } from "../../src/ports/runtime.ts";
import { createDriver, type Driver } from "../../src/reconcile/driver.ts";
import type { Task, Platform } from "../../src/reconcile/platform.ts";
import { appsTask } from "../../src/reconcile/apps/apps-task.ts";
import { buildsTask } from "../../src/reconcile/builds/builds-task.ts";
import { edgeTask } from "../../src/reconcile/edge/edge-task.ts";
import { createIngest } from "../../src/reconcile/logs/ingest.ts";
import { runsTask } from "../../src/reconcile/runs/runs-task.ts";
import { releasesTask } from "../../src/reconcile/releases/releases-task.ts";
import { testBuild, testDeployment, testProject } from "./fixtures.ts";
import { testApi, testOrganization, type TestApi, type TestOrganization } from "./test-platform.ts";
import { guardMs } from "./eventually.ts";
import { platformBeside } from "./platform-double.ts";
import { builderDouble, edgeDouble, postgresHostDouble, repositoriesDouble, runtimeDouble } from "./port-doubles.ts";

/** The API and the reconcilers of builds, releases and applications on a real database. Every build succeeds; applications are HTTP servers in this process. */
export interface ReleasePlatform {
  readonly api: TestApi;
  readonly platform: Platform;
  readonly apps: TestApps;
  /** Whether databases accept writes, by name; those that were never changed are missing. */
  readonly writable: ReadonlyMap<string, boolean>;
  /** The latest route of the project that the edge received. */
  route(projectId: string): { readonly state: RouteState; readonly targets: number } | undefined;
  /** Creates a project that serves deployment 1, in the given or a new organization. */
  servingProject(org?: TestOrganization): Promise<ReleaseProject>;
  /** Creates a project without deployments. */
  newProject(): Promise<ReleaseProject>;
  /** Stops the reconcilers as an orderly stop of the platform does. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  close(): Promise<void>;
}

export interface ReleaseProject {
  readonly org: TestOrganization;
  readonly owner: { readonly org_id: string; readonly project_id: string };
  readonly slug: string;
  readonly path: string;
  deployments(): Promise<DeploymentDocument[]>;
  /** Waits until the newest deployment has one of these statuses and at least this number, and returns it. */
  reaches(number: number, ...statuses: string[]): Promise<DeploymentDocument>;
  /** Pushes a commit, waits for the result, and returns the lines that the pusher received. */
  push(
    signal?: AbortSignal,
    tokenId?: string | null,
  ): Promise<{ readonly accepted: boolean; readonly lines: readonly string[] }>;
  /** The environment that the deployment's latest start received; empty before the first start. */
  environment(deploymentId: string): Readonly<Record<string, string>>;
  /** Requests a database for the project, which is then being created. */
  requestDatabase(): Promise<void>;
}

export interface DeploymentDocument {
  readonly id: string;
  readonly number: number;
  readonly status: string;
  readonly trigger: string;
  readonly failure: { readonly stage: string; readonly code: string; readonly summary: string } | null;
}

/** The applications of a platform. A changed setting applies to later builds, starts and commands. */
export interface TestApps {
  start: "healthy" | "unhealthy" | "crash" | "fault";
  /** A `broken` build crashes at every start. */
  builds: "sound" | "broken";
  /** The process types besides `web` of later builds. */
  processes: Readonly<Record<string, string>>;
  /** The web command of later builds; null: no web process. */
  web: string | null;
  /** The process type that crashes at each start. */
  crashing: string | undefined;
  /** Starts (`+id`) and ends (`-id`) of workloads, in order. */
  readonly events: readonly string[];
  /** Handles one-off commands. */
  runOnce: Runtime["runOnce"];
  /** Makes all running applications healthy. */
  heal(): void;
  /** Makes a running application exit with code 1. */
  crash(workloadId: string): void;
  /** The latest start of each workload; `crash` removes the entry. */
  readonly started: ReadonlyMap<string, Workload>;
  running(): readonly string[];
}

const broken = "sha256:broken";
const image = { image_ref: "sha256:0", kind: "static", web_command: "", release_command: null, size_bytes: 0 };

export interface ReleasePlatformOptions {
  readonly edge?: Edge;
  /** Further instances that the runtime reports. */
  readonly others?: () => readonly Instance[];
}

export async function startReleasePlatform(options: ReleasePlatformOptions = {}): Promise<ReleasePlatform> {
  const dir = await mkdtemp(join(tmpdir(), "berth-releases-"));
  const logStore = createDiskLogStore({ dir });
  const { apps, runtime, stop } = createApps(options.others ?? (() => []));
  const api = await testApi({ ports: { runtime, logStore } });
  let table: RouteTable = { version: 0, routes: [], challenge: null };
  const apply = async (routes: RouteTable) => void (table = routes.version > table.version ? routes : table);
  const edge = options.edge ?? edgeDouble({ apply });
  const endpoint = { host: "/nowhere", port: 5432, engine_version: "17" };
  const used = { size_bytes: 0, connections: 0, compacting: false, intact: true };
  const writable = new Map<string, boolean>();
  const postgresHost = postgresHostDouble({
    ensure: async () => endpoint,
    observe: async () => ({ state: "running", endpoint, ...used }),
    setWritable: async (_, name, isWritable) => void writable.set(name, isWritable),
  });
  const repositories = repositoriesDouble({ archive: () => Readable.from([]) });
  const built = () => ({
    ...image,
    web_command: apps.web,
    processes: apps.processes,
    ...(apps.builds === "broken" ? { image_ref: broken } : {}),
  });
  const builder = builderDouble({
    build: async () => ({ outcome: "built", image: built() }),
    images: async () => [image.image_ref, broken],
  });
  const { db, wakeups } = api.platform;
  const rows = platformBeside(api, {
    owner: formatIdentity(ownIdentity()),
    ports: { edge, repositories, builder, postgresHost },
  });
  const platform = { ...rows, ingestOutput: createIngest(rows) };
  let drivers: Driver[] = [];
  const startTask = async (task: (wake: () => void) => Task) => {
    const only: Task = task(() => driver.wake(only.name));
    const driver = createDriver({ tasks: [only], wakeups, log: silentLog });
    drivers.push(driver);
    await driver.start();
  };
  const pause = async () => {
    await Promise.all(drivers.map((driver) => driver.stop()));
    drivers = [];
  };
  const resume = async () => {
    await startTask(() => edgeTask(platform));
    await startTask((wake) => appsTask(platform, wake));
    await startTask((wake) => releasesTask(platform, wake));
    await startTask((wake) => runsTask(platform, wake));
    await startTask((wake) => buildsTask(platform, wake));
  };
  await resume();
  return {
    api,
    platform,
    apps,
    writable,
    route(projectId) {
      const route = table.routes.find((each) => each.project_id === projectId);
      return route && { state: route.state, targets: route.targets.length };
    },
    async servingProject(org) {
      const project = await makeProject({ api, platform, apps }, org);
      const build_id = await testBuild(api.platform, project.owner, { status: "succeeded" });
      const id = await testDeployment(api.platform, project.owner, { build_id, number: 1, status: "active" });
      await db.updateTable("deployment").set({ activated_at: new Date() }).where("id", "=", id).execute();
      return project;
    },
    newProject: () => makeProject({ api, platform, apps }),
    pause,
    resume,
    async close() {
      await pause();
      await stop();
      await api.close();
      await rm(dir, { recursive: true });
    },
  };
}

async function makeProject(
  { api, platform, apps }: Pick<ReleasePlatform, "api" | "platform" | "apps">,
  of?: TestOrganization,
) {
  const org = of ?? (await testOrganization(api.database.db, `o-${randomUUID().slice(0, 8)}`));
  const { id: project_id, slug } = await testProject(api.platform, org);
  const owner = { org_id: org.id, project_id };
  const path = `/v1/projects/${slug}`;
  const { db, vault } = platform;
  const deployments = () =>
    db
      .selectFrom("deployment")
      .select(["id", "number", "status", "trigger", "failure"])
      .where("project_id", "=", project_id)
      .orderBy("number", "desc")
      .execute() as Promise<DeploymentDocument[]>;
  const project: ReleaseProject = {
    ...{ org, owner, slug, path, deployments },
    async reaches(number, ...statuses) {
      const found = await until(
        async () => {
          const [newest] = await deployments();
          return newest !== undefined && newest.number >= number && statuses.includes(newest.status)
            ? newest
            : undefined;
        },
        { timeoutMs: guardMs },
      );
      if (found === undefined) throw new Error(`not reached: ${JSON.stringify(await deployments())}`);
      return found;
    },
    push: (signal = new AbortController().signal, tokenId = null) =>
      push(platform, { ...owner, token_id: tokenId }, signal),
    environment: (deploymentId) => apps.started.get(deploymentId)?.env ?? {},
    requestDatabase: () => db.transaction().execute(async (tx) => void (await requestDatabase(tx, vault, owner))),
  };
  return project;
}

let commits = 0;

/** Requests and follows a build as the git server does, without git. */
async function push(
  platform: Platform,
  owner: ReleaseProject["owner"] & { readonly token_id: string | null },
  signal: AbortSignal,
) {
  const commit = (commits += 1).toString(16).padStart(40, "0");
  const wanted = {
    ...owner,
    origin: "push",
    commit,
    branch: "main",
    message: "Change",
    author: "Ada",
    requested_by: "ada",
  } as const;
  const last = await platform.db
    .selectFrom("deployment")
    .select("commit")
    .where("project_id", "=", owner.project_id)
    .where("trigger", "=", "push")
    .where("activated_at", "is not", null)
    .orderBy("number", "desc")
    .executeTakeFirst();
  const old_commit = last?.commit ?? "c".repeat(40);
  const { id } = await platform.db
    .transaction()
    .execute((tx) => requestBuild(tx, platform.wakeups, { ...wanted, old_commit, lease_owner: platform.owner }));
  const lines: string[] = [];
  const following = {
    db: platform.db,
    wakeups: platform.wakeups,
    logStore: platform.ports.logStore,
    owner: platform.owner,
  };
  const { accepted } = await followBuild(following, { org_id: owner.org_id, id, signal }, (line) => lines.push(line));
  return { accepted, lines };
}

interface RunningApp {
  readonly workload: Workload;
  readonly server: Server;
  status: number;
  instance: Instance;
}

/** Creates a runtime whose applications are HTTP servers in this process. */
function createApps(others: () => readonly Instance[]) {
  const running = new Map<string, RunningApp>();
  const started = new Map<string, Workload>();
  const events: string[] = [];
  const apps: TestApps = {
    start: "healthy",
    builds: "sound",
    processes: {},
    web: "",
    crashing: undefined,
    events,
    runOnce: async () => ({ outcome: "exited", code: 0, out_of_memory: false }),
    heal: () => running.forEach((app) => void (app.status = 200)),
    crash(id) {
      const app = running.get(id);
      started.delete(id);
      if (app !== undefined) app.instance = exited(app.instance);
    },
    started,
    running: () => [...running.keys()],
  };
  const start = async (workload: Workload, attempt: number) => {
    started.set(workload.id, workload);
    if (apps.start === "fault") throw new Error("the machine is full");
    const kind = workload.image_ref === broken || workload.process === apps.crashing ? "crash" : apps.start;
    events.push(`+${workload.id}`);
    const app = await startApp({ workload, attempt, kind }, () => running.get(workload.id)?.status ?? 500);
    running.set(workload.id, app);
    return app.instance;
  };
  const end = async (id: string) => {
    running.get(id)?.server.close();
    running.get(id)?.server.closeAllConnections();
    if (running.delete(id)) events.push(`-${id}`);
  };
  const runtime = runtimeDouble({
    async start(workload, { attempt }) {
      await end(workload.id);
      return start(workload, attempt);
    },
    observe: async () => [...[...running.values()].map(({ instance }) => instance), ...others()],
    remove: (id) => end(id),
    runOnce: (workload, task) => apps.runOnce(workload, task),
  });
  return { apps, runtime, stop: () => Promise.all([...running.keys()].map(end)) };
}

interface Starting {
  readonly workload: Workload;
  readonly attempt: number;
  readonly kind: TestApps["start"];
}

async function startApp({ workload, attempt, kind }: Starting, status: () => number): Promise<RunningApp> {
  const server = createServer((_, response) => response.writeHead(status()).end(workload.id));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const instance: Instance = {
    ...{ workload_id: workload.id, project_id: workload.project_id, image_ref: workload.image_ref },
    ...{
      ordinal: 0,
      attempt,
      started_at: new Date(),
      output_mark: "",
      state: "running",
      address: workload.port === null ? null : { host: "127.0.0.1", port },
      exit: null,
    },
  };
  return {
    ...{ workload, server, status: kind === "healthy" ? 200 : 500 },
    instance: kind === "crash" ? exited(instance) : instance,
  };
}

function exited(instance: Instance): Instance {
  return { ...instance, state: "exited", address: null, exit: { code: 1, out_of_memory: false, at: new Date() } };
}
