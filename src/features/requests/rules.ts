import type { Query, Result } from "../../contract/routes.ts";
import type { StoredRequest } from "../../ports/log-store.ts";

type Filters = Pick<Query<"requests.paths">, "path" | "status" | "slow_ms">;
type Paths = Result<"requests.paths">;

export function requestFilter({ path, status, slow_ms }: Filters): (request: StoredRequest) => boolean {
  const part = path?.toLowerCase();
  return (request) => {
    if (slow_ms !== undefined && request.ms < slow_ms) return false;
    if (status !== undefined && !isOfStatus(request.status, status)) return false;
    if (part === undefined) return true;
    return request.path.toLowerCase().includes(part) || foldPath(request.path).toLowerCase().includes(part);
  };
}

function isOfStatus(status: number, wanted: string): boolean {
  return wanted.endsWith("xx") ? Math.floor(status / 100) === Number(wanted[0]) : status === Number(wanted);
}

const maxSegments = 8;

/** Replaces numbers and ids in a path by `:id`, and what is deeper than eight segments by `…`. */
export function foldPath(path: string): string {
  const segments = path.split("/");
  const folded = segments.slice(0, maxSegments + 1).map((segment) => (isId(segment) ? ":id" : segment));
  return `${folded.join("/")}${segments.length > folded.length ? "/…" : ""}`;
}

/** A number, a UUID, a hash, an address, or a random word: letters mixed with digits, and no file name or dated title. */
function isId(segment: string): boolean {
  if (/^\d+$/.test(segment) || segment.length > 60) return true;
  if (/@|%40/.test(segment)) return true;
  if (/^[0-9a-f]{8,}(?:-[0-9a-f]+)*$/i.test(segment)) return true;
  if (!/^[\w-]+$/.test(segment) || !/\d/.test(segment)) return false;
  if (segment.length >= 16 && /[A-Z]/.test(segment)) return true;
  return segment.length >= 8 && (segment.match(/\d/g)?.length ?? 0) >= 3 && !segment.includes("-");
}

interface Times {
  readonly method: string;
  readonly path: string;
  readonly taken: { readonly ms: number; readonly weight: number }[];
  errors: number;
}

export const otherPaths = "(other paths)";

/** Collects requests by method and folded path. Past `mostPaths` different ones, the rest counts as one. */
export function createPathTable(mostPaths = 1000) {
  const paths = new Map<string, Times>();
  let from: string | null = null;
  let sampled = false;
  return {
    add(request: StoredRequest): void {
      const found = timesOf(paths, request, mostPaths);
      found.taken.push({ ms: request.ms, weight: request.weight });
      if (request.status >= 500) found.errors += request.weight;
      if (from === null || request.at < from) from = request.at;
      sampled ||= request.weight > 1;
    },
    result(sort: Query<"requests.paths">["sort"], limit: number): Paths {
      const all = Array.from(paths.values(), summaryOf);
      const requests = all.reduce((sum, { count }) => sum + count, 0);
      const rank = { count: "count", slow: "p95_ms", errors: "errors" } as const;
      const sorted = all.toSorted((a, b) => b[rank[sort]] - a[rank[sort]] || b.count - a.count);
      return { from, requests, sampled, paths: sorted.slice(0, limit) };
    },
  };
}

function timesOf(paths: Map<string, Times>, { method, path }: StoredRequest, mostPaths: number): Times {
  const folded = foldPath(path);
  const isKnown = paths.has(`${method} ${folded}`) || paths.size < mostPaths;
  const named = isKnown ? { method, path: folded } : { method: "*", path: otherPaths };
  const key = `${named.method} ${named.path}`;
  const found = paths.get(key) ?? { ...named, taken: [], errors: 0 };
  paths.set(key, found);
  return found;
}

function summaryOf({ method, path, taken, errors }: Times): Paths["paths"][number] {
  const sorted = taken.toSorted((a, b) => a.ms - b.ms);
  const count = sorted.reduce((sum, { weight }) => sum + weight, 0);
  const at = (share: number) => {
    let passed = 0;
    return sorted.find(({ weight }) => (passed += weight) >= share * count)?.ms ?? 0;
  };
  return { method, path, count, p50_ms: at(0.5), p95_ms: at(0.95), errors };
}
