/** What the checks let pass, with reasons. The lists may only shrink: the checks report entries that are no longer needed. */
export const exceptions = {
  /** `file` or `file#name`: names that the rules would refuse. */
  names: {
    "src/git/paths.ts#GitService": "git's own protocol calls its two verbs services",
  } as Exceptions,
  /** `file`: files that name a host or path which others must not. */
  texts: {} as Exceptions,
  /** `noun.part`: what a noun of the contract lacks, `*.part` what all of them do (see test/layout.test.ts). */
  layout: {} as Exceptions,
};

export type Exceptions = Readonly<Record<string, string>>;

/** Removes what is excepted and reports the exceptions that nothing needs any more. */
export function withoutExceptions(findings: ReadonlyMap<string, string>, allowed: Exceptions): readonly string[] {
  const kept = [...findings].filter(([key]) => !(key in allowed)).map(([, text]) => text);
  const stale = Object.keys(allowed).filter((key) => !findings.has(key));
  return [...kept, ...stale.map((key) => `tools/check/exceptions.ts: "${key}" is no longer needed: remove it`)];
}
