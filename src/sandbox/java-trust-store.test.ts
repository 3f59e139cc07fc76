import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { rootCertificates } from "node:tls";
import { run } from "../kit/exec.ts";
import { certificateVariables, trustedCertificates } from "./certificates.ts";
import { javaTrustStore } from "./java-trust-store.ts";

let dir: string;
before(() => (dir = mkdtempSync(join(tmpdir(), "berth-trust-"))));
after(() => rmSync(dir, { recursive: true, force: true }));

const [first = "", second = ""] = rootCertificates;

test("Java's own tool verifies a trust store and finds each certificate of the bundle once", async (t) => {
  const store = join(dir, "store.jks");
  writeFileSync(store, javaTrustStore([`# a comment\n${first}`, second, first].join("\n")));
  const args = ["-list", "-keystore", store, "-storepass", "changeit"];
  const listed = await run({ file: "keytool", args }).catch(() => null);
  if (listed === null) return t.skip("SKIPPED: no JDK");
  const prints = listed.stdout.match(/(?<=SHA-256\): )[\dA-F:]+/g);
  assert.deepEqual(prints?.toSorted(), [first, second].map(fingerprint).toSorted());
});

test("a CA that the operator gives is trusted by Java too, besides the system's", () => {
  const given = join(dir, "given.pem");
  writeFileSync(given, first);
  const certificates = trustedCertificates(join(dir, "state"), given);
  assert.ok(certificates?.java, "there is no trust store for Java");
  assert.deepEqual(readFileSync(certificates.java), javaTrustStore(readFileSync(certificates.pem, "utf8")));
  const variables = certificateVariables({ pem: "/inside/ca.pem", java: "/inside/ca.jks" });
  assert.equal(variables["JAVA_TOOL_OPTIONS"], "-Djavax.net.ssl.trustStore=/inside/ca.jks");
});

test("without a given CA, Java keeps its own trust store", () => {
  assert.equal(trustedCertificates(join(dir, "none"))?.java ?? null, null);
  assert.ok(!("JAVA_TOOL_OPTIONS" in certificateVariables({ pem: "/inside/ca.pem", java: null })));
});

function fingerprint(pem: string): string {
  const der = Buffer.from(pem.replaceAll(/-----[^-]+-----|\s/g, ""), "base64");
  return (hash("sha256", der, "hex").match(/../g) ?? []).join(":").toUpperCase();
}
