import semver from "semver";

const digest = /^sha512-[A-Za-z0-9+/]{86}==$/;
// A URL without user, token or other secret: what can be fetched from it without a login is available to every project.
const openAddress = /^https:\/\/[^/?#@]+\/[^?#]*$/;
const rootFields = ["dependencies", "devDependencies", "optionalDependencies", "peerDependencies"];

/** Returns npm's lock file without the name, if it alone determines the install: digests everywhere, no install scripts. Null otherwise. */
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
