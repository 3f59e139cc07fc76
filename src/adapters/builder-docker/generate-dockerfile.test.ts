import assert from "node:assert/strict";
import { test } from "node:test";
import { detect } from "../../detection/detect.ts";
import { planBuild } from "../../detection/plan-build.ts";
import { testTree } from "../../../test/support/source-tree.ts";
import { generateDockerfile } from "./generate-dockerfile.ts";

const parents = { node: "n", python: "py", go: "g", rust: "r", ruby: "rb", php: "ph", java: "j", plain: "p" };
const java = { jdks: [{ version: "21", folder: "", home: null }], tools: { maven: true, gradle: false } };

const textOf = (files: Record<string, string>, certificates: boolean): string => {
  const tree = testTree(files);
  const plan = planBuild(detect(tree), tree, { python: null, java, versions: { go: "1.22.0" }, home: "/app" });
  return generateDockerfile({ plan, parents, installFiles: [], start: null, isWhole: false, certificates }).text;
};

test("steps of Java get the machine's certificates as a trust store, which Java's tools read by themselves", () => {
  const text = textOf({ "pom.xml": "<project/>" }, true);
  assert.match(
    text,
    /--mount=type=secret,id=berth-ca-java,target=(\S+) .*JAVA_TOOL_OPTIONS=-Djavax\.net\.ssl\.trustStore=\1;/,
  );
});

test("other steps get them as a file that their tools are pointed to", () => {
  const text = textOf({ "package.json": '{"scripts":{"start":"node ."}}', "package-lock.json": "{}" }, true);
  assert.match(text, /--mount=type=secret,id=berth-ca,target=(\S+) .*SSL_CERT_FILE=\1;.*GIT_SSL_CAINFO=\1;/);
  assert.doesNotMatch(text, /JAVA_TOOL_OPTIONS/);
});

test("without certificates of the operator the base image's are trusted", () => {
  assert.doesNotMatch(textOf({ "pom.xml": "<project/>" }, false), /berth-ca|trustStore|SSL_CERT_FILE/);
});

test("every release starts in /app, where its files lie", () => {
  const sources: Record<string, Record<string, string>> = {
    go: { "go.mod": "module x\n\ngo 1.22\n", "main.go": "package main\n\nfunc main() {}\n" },
    node: { "package.json": '{"scripts":{"start":"node ."}}' },
  };
  for (const [kind, files] of Object.entries(sources)) {
    const release = textOf(files, false).split("\nFROM ").at(-1) ?? "";
    const isOfBuild = release.startsWith("build AS release");
    assert.ok(isOfBuild || /^WORKDIR \/app$/m.test(release), `${kind}: ${release}`);
  }
});
