import semver from "semver";

const digest = /^sha512-[A-Za-z0-9+/]{86}==$/;
// With no user, no token and no other secret in it: what is fetched by it without a login, every project could fetch.
const openAddress = /^https:\/\/[^/?#@]+\/[^?#]*$/;
const rootFields = ["dependencies", "devDependencies", "optionalDependencies", "peerDependencies"];

/**
 * npm's lock file without what names its application, when nothing but that text decides what npm installs: every package has the digest
 * of its content, and none has a script to run. Null when more takes part.
 */
export function standaloneLock(text: string): string | null {
  const lock = parse(text);
  const packages = asRecord(lock?.["packages"]);
  const root = asRecord(packages?.[""]);
  const version = lock?.["lockfileVersion"];
  if (packages === null || root === null || (version !== 2 && version !== 3)) return null;
  const others = Object.entries(packages).filter(([path]) => path !== "");
  if (!others.every(([path, entry]) => isPlainPath(path) && isFixed(asRecord(entry)))) return null;
  const plainRoot = Object.fromEntries(rootFields.map((field) => [field, root[field]]));
  return JSON.stringify({
    lockfileVersion: version,
    requires: true,
    packages: { "": plainRoot, ...Object.fromEntries(others) },
  });
}

function isFixed(entry: Record<string, unknown> | null): boolean {
  if (entry === null || entry["link"] !== undefined || entry["hasInstallScript"] !== undefined) return false;
  const { resolved, integrity, version } = entry;
  const isOpen = resolved === undefined || (typeof resolved === "string" && openAddress.test(resolved));
  const hasDigest = typeof integrity === "string" && digest.test(integrity);
  return isOpen && hasDigest && typeof version === "string" && semver.valid(version) !== null;
}

function isPlainPath(path: string): boolean {
  return (
    /^node_modules\/[^\\]+$/.test(path) && path.split("/").every((part) => part !== "" && part !== "." && part !== "..")
  );
}

function parse(text: string): Record<string, unknown> | null {
  try {
    return asRecord(JSON.parse(text));
  } catch {
    return null;
  }
}

function asRecord(value: unknown): Record<string, unknown> | null {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;
}
