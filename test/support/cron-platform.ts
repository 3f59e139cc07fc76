import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { newId } from "../../src/kit/ids.ts";
import type { Clock } from "../../src/ports/clock.ts";
import type { InstanceAddress } from "../../src/ports/runtime.ts";
import type { CronSettings, Platform } from "../../src/reconcile/platform.ts";
import type { Db } from "../../src/store/database.ts";
import type { Vault } from "../../src/store/vault.ts";
import { readyReplica, testBuild, testDeployment, testProject } from "./fixtures.ts";
import { testOrganization } from "./test-platform.ts";
import { platformDouble, testSettings } from "./platform-double.ts";

/** The parts of the platform that the cron task needs. */
export interface CronWorldOptions {
  readonly db: Db;
  readonly vault: Vault;
  readonly clock: Clock;
  readonly owner: string;
  readonly settings?: Partial<CronSettings>;
  /** Default: applications are served over HTTP. */
  readonly appUrl?: Platform["appUrl"];
}

/** A platform for the cron task alone; access to any other part of it fails the test. */
export function cronWorld(options: CronWorldOptions): Platform {
  const { settings, ...given } = options;
  return platformDouble({ ...given, settings: { cron: { ...testSettings.cron, ...settings } } });
}

export interface CronProject {
  readonly org_id: string;
  readonly project_id: string;
  readonly slug: string;
  readonly deployment_id: string;
}

/** A project with an active deployment whose one replica is ready at the address. */
export async function deployedProject(
  store: { db: Db; vault: Vault },
  address: InstanceAddress | null = null,
): Promise<CronProject> {
  const org = await testOrganization(store.db, `o-${randomBytes(5).toString("hex")}`);
  const project = await testProject(store, org);
  const owner = { org_id: org.id, project_id: project.id };
  const build_id = await testBuild(store, owner, { status: "succeeded" });
  const deployment_id = await testDeployment(store, owner, { build_id, number: 1, status: "active" });
  if (address !== null) await readyReplica(store.db, { org_id: org.id, deployment_id, address });
  return { ...owner, slug: project.slug, deployment_id };
}

/** Inserts a job directly into the database with the time from which it is due. */
export async function addJob(
  db: Db,
  project: Pick<CronProject, "org_id" | "project_id">,
  job: {
    name: string;
    next_run_at: Date;
    schedule?: string;
    path?: string;
    command?: string;
    updated_at?: Date;
    enabled?: boolean;
  },
): Promise<string> {
  const id = newId("job");
  const { org_id, project_id } = project;
  const standard = { schedule: "* * * * *", path: `/${job.name}`, enabled: true };
  await db
    .insertInto("cron_job")
    .values({ id, org_id, project_id, ...standard, ...job })
    .execute();
  return id;
}

/** A request that the application received. */
export interface CronHit {
  readonly url: string;
  readonly method: string;
  readonly headers: IncomingMessage["headers"];
  readonly atMs: number;
}

export interface CronApp {
  readonly address: InstanceAddress;
  readonly hits: readonly CronHit[];
  close(): Promise<void>;
}

/** A real application on a free port that records its requests; it answers `done` unless the test gives another handler. */
export async function startCronApp(
  answer: (request: IncomingMessage, response: ServerResponse) => void = (_, response) => response.end("done"),
): Promise<CronApp> {
  const hits: CronHit[] = [];
  const server = createServer((request, response) => {
    hits.push({ url: request.url ?? "", method: request.method ?? "", headers: request.headers, atMs: Date.now() });
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen({ host: "127.0.0.1", port: 0, backlog: 4096 }, resolve));
  const close = () => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  };
  return { address: { host: "127.0.0.1", port: (server.address() as AddressInfo).port }, hits, close };
}

/** A clock that shows `fromMs` at the real time `startMs` and runs `speed` times as fast; all processes see the same time. */
export interface FastClock {
  readonly fromMs: number;
  readonly startMs: number;
  readonly speed: number;
}

export function fastClock({ fromMs, startMs, speed }: FastClock): Clock {
  return { now: () => new Date(fromMs + (Date.now() - startMs) * speed) };
}
