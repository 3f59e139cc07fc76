// A release command: it may be run again with every deploy, so it must be repeatable.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

const folder = process.env.STORAGE_DIR ?? "/tmp";
const file = join(folder, "schema.json");
const wanted = 2;

await mkdir(folder, { recursive: true });
const { version } = JSON.parse(await readFile(file, "utf8").catch(() => '{"version":0}'));
for (let next = version + 1; next <= wanted; next += 1) console.log(`migrating to version ${next}`);
await writeFile(file, JSON.stringify({ version: wanted }));
console.log(`the schema is at version ${wanted}`);
