import { existsSync } from "node:fs";
import { withoutRegistry } from "./process-builder.ts";
import { withoutPypi } from "./without-pypi.ts";

const answers = async (url: string, what: string) =>
  (await fetch(url).catch(() => null)) === null && `${what} cannot be reached`;
const lacks = (program: string) =>
  !(process.env["PATH"] ?? "").split(":").some((folder) => existsSync(`${folder}/${program}`)) &&
  `${program} is not installed`;

const withoutPython = (await withoutPypi()) ?? false;

/** For each template why it cannot be built here; false where it can. */
export const missingForTemplate: Readonly<Record<string, string | false>> = {
  node: false,
  static: false,
  nextjs: withoutRegistry,
  python: withoutPython,
  django: withoutPython,
  go: lacks("go"),
  rust: lacks("cargo"),
  java: lacks("mvn") || (await answers("https://repo.maven.apache.org/maven2/", "Maven Central")),
  php: lacks("php"),
  ruby: lacks("ruby") || (await answers("https://rubygems.org/", "RubyGems")),
};
