import { errors, type ErrorCode, type ErrorDefinition, type NextCall } from "../contract/errors.ts";
import { route, type RouteName } from "../contract/routes.ts";

/** Returns the call that an error's definition suggests, with its path filled in from the request; undefined when that is impossible. */
export function nextCallOf(code: ErrorCode, params: unknown): NextCall | undefined {
  const definition: ErrorDefinition = errors[code];
  if (definition.next === undefined) return undefined;
  const row = route(definition.next as RouteName);
  const path = pathOf(row.path, params);
  return path === undefined ? undefined : { route: row.name, method: row.method, path };
}

/** Fills a request's path parameters into a row's path; undefined when one is missing. */
export function pathOf(path: string, params: unknown): string | undefined {
  const given = (params ?? {}) as Readonly<Record<string, string | undefined>>;
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name = ""]) => name);
  if (names.some((name) => given[name] === undefined)) return undefined;
  return path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(given[name] ?? ""));
}
