import { readFileSync } from "node:fs";

import { exceptions, withoutExceptions } from "./exceptions.ts";
import { report } from "./report.ts";
import { trackedFiles } from "./tracked-files.ts";

/** What no tracked file may say. The patterns are written so that they don't match themselves. */
const refused: readonly { readonly pattern: RegExp; readonly only?: RegExp; readonly advice: string }[] = [
  {
    pattern: /(?:^|[\s"'`(=:])\/(?:wor[k]|roo[t](?=\/[^.])|home\/(?!app\/)[a-z]+)\//m,
    advice: "names a folder of one machine",
  },
  { pattern: /\/tmp\/berth\//, advice: "names a folder of one machine: use os.tmpdir()" },
  { pattern: /registry\.(?:npmj[s]|yarnpk[g])/, advice: "names a package registry: npm's settings do" },
  { pattern: /"resolve[d]": "http/, only: /^package-lock\.json$/, advice: "holds registry addresses: see .npmrc" },
  { pattern: /\bshell:\s*tru[e]\b/, only: /\.(?:ts|tsx|mjs)$/, advice: "starts a shell: pass an argument array" },
  {
    // inherited-descriptors.ts reads a variable of Node's own, before there are settings.
    pattern: /\bprocess\.en[v]\b/,
    only: /^src\/(?!daemon\/config\.ts$|cli\/environment\.ts$|kit\/inherited-descriptors\.ts$).*(?<!\.test|\.suite|-fixture|\/test-[a-z-]+)\.ts$/,
    advice: "reads the environment: daemon/config.ts does that",
  },
  { pattern: /\b(?:clau[d]e|anthropi[c]|chatgp[t])\b/i, advice: "speaks of something other than Berth" },
];

const binary = /\.(?:png|ico|woff2?|gz|tgz|wasm)$/;

export function refusedTexts(file: string, text: string): readonly string[] {
  return refused
    .filter(({ only }) => only === undefined || only.test(file))
    .flatMap(({ pattern, advice }) => {
      const match = pattern.exec(text);
      return match ? [`${file}:${text.slice(0, match.index).split("\n").length}: ${advice} (${match[0].trim()})`] : [];
    });
}

async function findAll(): Promise<readonly string[]> {
  const findings = new Map<string, string>();
  for (const file of await trackedFiles()) {
    if (binary.test(file)) continue;
    for (const text of refusedTexts(file, readFileSync(file, "utf8"))) findings.set(file, text);
  }
  return withoutExceptions(findings, exceptions.texts);
}

if (import.meta.main) report(await findAll());
