import { createHash } from "node:crypto";
import { createGlob } from "../../kit/glob.ts";

export interface PreviewSettings {
  /** How long a preview stays after the last push of its branch. */
  readonly hours: number;
  readonly perProject: number;
}

/** The longest slug of a preview: a DNS label has 63 characters, and a hostname may end in a hyphen and 6 more. */
const longest = 56;
const hashLength = 6;

/** Returns the slugs to try for a branch's preview. The second has a hash of its name, which a hostname may not show. */
export function slugsFor(branch: string, slug: string): readonly string[] {
  const plain = plainName(branch);
  const hash = createHash("sha256").update(branch).digest("hex").slice(0, hashLength);
  const end = `--${slug}`;
  const room = longest - end.length;
  const cut = plain.slice(0, room - hashLength - 1).replace(/-$/, "");
  const hashed = `${cut === "" ? "branch" : cut}-${hash}${end}`;
  return plain !== "" && plain.length <= room ? [plain + end, hashed] : [hashed];
}

/** Returns a name in lower case, with hyphens for all but letters and digits. */
function plainName(name: string): string {
  return name
    .normalize("NFKD")
    .toLowerCase()
    .replace(/\p{M}/gu, "")
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "");
}

/** Returns the branch whose preview gets what a token in approval mode deploys where agents deploy to previews only. */
export function agentBranch(tokenName: string): string {
  const name = plainName(tokenName).slice(0, 40).replace(/-$/, "");
  if (name === "") return "agent";
  return name.startsWith("agent") ? name : `agent-${name}`;
}

/** As git's: nothing that a ref name must not hold. */
export const isBranchName = (name: string): boolean =>
  /^[^\s~^:?*[\\\p{Cc}]+$/u.test(name) && !/\.\.|@\{|^[-/]|\/$/.test(name);

/** Returns whether one of the patterns matches a branch. `*` stands for any text, slashes included. */
export function hasPreviews(patterns: readonly string[] | null, branch: string): boolean {
  // No branch has a colon in its name, so it hides the slashes, at which `*` would end.
  const [name, work] = [branch.replaceAll("/", ":"), { steps: 0 }];
  return (patterns ?? []).some((pattern) => createGlob(pattern.replaceAll("/", ":"), "plain").matches(name, work));
}
