import { certificatesMark, createEdgeCertificates } from "../../features/certificates/certificates.ts";
import { Refused } from "../../features/context.ts";
import { keepRequests } from "../../features/requests/requests.ts";
import { changedRoutes, nextRouteVersion, saveEdge, type ProjectRoutes } from "../../features/routes/routes.ts";
import { wakeProject } from "../../features/sleep/sleep.ts";
import type { Edge, EdgeRequest, Route } from "../../ports/edge.ts";
import type { Task, Platform } from "../platform.ts";

const periodMs = 3000;
const drainPollMs = 100;
/** As long as the edge holds a request. */
const wakeMs = 30_000;

/** Keeps this machine's edge running with the routes and certificates from the rows, and reports what it serves. */
export function edgeTask(platform: Platform): Task {
  const { db, wakeups, machine, ports, certificates } = platform;
  const known = new Map<string, ProjectRoutes["routes"]>();
  const syncCertificates = certificateSync(platform);
  const toHttps = overHttps(platform);
  const control = controlRoutes(platform);
  let snapshot: string | null = null;
  let hears = false;
  const wake = (id: string) => wakeProject(platform, id, AbortSignal.timeout(wakeMs));
  const listen = async () => {
    await ports.edge.wakeBy(wake);
    await ports.edge.reportRequests(noteRequests(platform));
    return true;
  };
  return {
    name: "edge",
    periodMs,
    topics: ["edge"],
    async run() {
      const version = await nextRouteVersion(db);
      // Certificates come before routes, which redirect to HTTPS only if a certificate is in use.
      await syncCertificates(version);
      const changes = await changedRoutes(db, snapshot);
      for (const { project_id, routes } of changes.projects) known.set(project_id, routes);
      snapshot = changes.snapshot;
      const routes = [...known.values()].flat().concat(control).map(toHttps);
      // Routes go on without: what sleeps stays asleep then, and requests are not logged.
      hears ||= await listen().catch((error: unknown) => {
        platform.log.error({ err: error }, "the edge could not be listened to; it will be tried again");
        return false;
      });
      await ports.edge.apply({ version, routes, challenge: certificates.control });
      const { kind } = ports.edge;
      const id = edgeId(machine, ports.edge);
      const open_requests = await openRequests(platform, changes.draining);
      const versions = { route_version: version, certificate_version: version };
      await saveEdge(db, { id, machine, kind, ...versions, open_requests });
      await wakeups.send(db, "edges", id);
      const detail = `${routes.length} routes, version ${version}`;
      return changes.draining.length > 0 ? { detail, againMs: drainPollMs } : { detail };
    },
  };
}

/** Returns a function that stores reported requests, one batch after the other; a batch that comes while two wait is dropped. */
function noteRequests(platform: Platform): (requests: readonly EdgeRequest[]) => void {
  let waiting = 0;
  let last = Promise.resolve();
  const fail = (error: unknown) => {
    // The log is on the primary's disk.
    if (!(error instanceof Refused)) platform.log.error({ err: error }, "requests could not be logged");
  };
  return (requests) => {
    if (waiting >= 2) return;
    waiting += 1;
    last = last
      .then(() => keepRequests(platform, requests))
      .catch(fail)
      .finally(() => void (waiting -= 1));
  };
}

export const edgeId = (machine: string, { kind }: Pick<Edge, "kind">): string => `${machine}/${kind}`;

/** Returns a function that applies the certificates to the edge if they changed since the last time. */
function certificateSync({ db, vault, ports, certificates, httpsNames }: Platform) {
  const readCertificates = createEdgeCertificates({ db, vault });
  let served = "";
  return async (version: number): Promise<void> => {
    const own = certificates.own();
    const mark = `${await certificatesMark(db)} ${own.map((each) => each.chain_pem).join()}`;
    if (mark === served) return;
    const table = { version, certificates: await readCertificates(own) };
    await ports.edge.applyCertificates(table);
    httpsNames.set(table.certificates.flatMap((each) => each.names));
    served = mark;
  };
}

/**
 * Adds HTTPS settings to routes. Returns the same object for the same route, because edges compare routes by identity first. A name with a
 * certificate redirects to another name once that has one, too; until then it serves the application.
 */
function overHttps({ httpsNames, certificates: { hsts } }: Platform): (route: Route) => Route {
  const encrypted = new WeakMap<Route, Route>();
  return (route) => {
    const { redirect_to: other, ...rest } = route;
    const isHttps = httpsNames.has(route.hostname);
    const toHttps = other !== undefined && httpsNames.has(other.hostname);
    if (!isHttps && !toHttps) return route;
    const known = encrypted.get(route);
    const isSame = (known?.https === "redirect") === isHttps && (known?.redirect_to?.https ?? false) === toHttps;
    if (known !== undefined && isSame) return known;
    const redirect = toHttps ? { redirect_to: { ...other, https: true } } : {};
    const next: Route = { ...rest, ...redirect, ...(isHttps ? { https: "redirect", hsts } : {}) };
    encrypted.set(route, next);
    return next;
  };
}

/** Returns the control plane's own routes: the API, git over HTTP and pages. */
function controlRoutes({ certificates: { control, controlHost } }: Platform): readonly Route[] {
  if (control === null || controlHost === null) return [];
  const plain = { state: "serving", https: "off", hsts: false, is_control: true } as const;
  return [{ hostname: controlHost, project_id: "platform", targets: [control], ...plain }];
}

async function openRequests({ ports }: Platform, draining: readonly string[]): Promise<Record<string, number>> {
  if (draining.length === 0) return {};
  const open = await ports.edge.openRequests();
  return Object.fromEntries(draining.map((target) => [target, open.get(target) ?? 0]));
}
