export const noCommit = "0".repeat(40);

// All arguments of git are validated here, so that no external name can become an option or an expression.
export function commitId(commit: string): string {
  if (!/^[0-9a-f]{40}$/.test(commit)) throw new Error("Not a full commit id.");
  return commit;
}

export function refName(ref: string): string {
  if (!/^refs\/[^\s~^:?*[\\\p{Cc}]+$/u.test(ref) || ref.includes("..") || ref.includes("@{"))
    throw new Error("Not a full ref name.");
  return ref;
}

export function pinRef(buildId: string): string {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(buildId)) throw new Error("Not a build id.");
  return `refs/berth/builds/${buildId}`;
}
