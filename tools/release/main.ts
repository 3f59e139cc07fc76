import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { buildRelease } from "./build-release.ts";

const { values } = parseArgs({
  options: {
    key: { type: "string" },
    to: { type: "string", default: "tmp/release" },
    arch: { type: "string", multiple: true },
  },
});
const arches = (values.arch ?? [process.arch]).map((name) => {
  if (name !== "x64" && name !== "arm64") throw new Error(`There are no releases for ${name}, only for x64 and arm64.`);
  return name;
});
if (values.key === undefined) {
  console.error(`usage: npm run release -- --key FILE [--to FOLDER] [--arch x64|arm64]...
Builds the newest commit. FILE holds the ed25519 key that signs it: openssl genpkey -algorithm ed25519 -out FILE`);
  process.exit(2);
}
const privateKey = await readFile(values.key, "utf8");
const to = resolve(values.to);
const archives = await buildRelease(to, privateKey, arches);
console.log(`Wrote ${archives.join(", ")}, install.sh, SHA256SUMS and SHA256SUMS.sig.`);
