import { readFileSync } from "node:fs";

import { trackedFiles } from "../check/tracked-files.ts";
import { sentencesOf } from "./sentences-of.ts";

const isTest = /\.(?:test|suite)\.tsx?$|\/test-[^/]+\.ts$|-fixture\.ts$/;

// npm run texts [PART...]: prints every sentence of the product with its place; with arguments, those in files whose path contains one of them.
const only = process.argv.slice(2);
const files = (await trackedFiles(["src"])).filter((file) => /\.tsx?$/.test(file) && !isTest.test(file));
for (const file of files.filter((each) => only.length === 0 || only.some((part) => each.includes(part)))) {
  for (const { line, text } of sentencesOf(file, readFileSync(file, "utf8"))) console.log(`${file}:${line}: ${text}`);
}
