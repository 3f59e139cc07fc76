import assert from "node:assert/strict";
import { test } from "node:test";
import { readConfig } from "./config.ts";
import { edgeKind } from "./edge.ts";

const config = (environment: Record<string, string>, isRoot = true) => ({ ...readConfig(environment), isRoot });
const installed = { haproxy: "/usr/sbin/haproxy", setpriv: "/usr/bin/setpriv" };
const lacking = { haproxy: null, setpriv: null };

test("HAProxy carries the traffic by itself where it is installed and Berth is root's with the public ports", () => {
  const onPublicPorts = { BERTH_EDGE_PORT: "80", BERTH_EDGE_TLS_PORT: "443" };
  assert.equal(edgeKind({ config: config(onPublicPorts), parts: installed }), "haproxy");
  assert.equal(edgeKind({ config: config(onPublicPorts), parts: lacking }), "builtin");
  assert.equal(edgeKind({ config: config(onPublicPorts, false), parts: installed }), "builtin");
  assert.equal(edgeKind({ config: config({}), parts: installed }), "builtin");
});

test("a setting chooses the edge, and a missing HAProxy is named with its remedy", () => {
  assert.equal(edgeKind({ config: config({ BERTH_EDGE: "haproxy" }, false), parts: installed }), "haproxy");
  assert.equal(
    edgeKind({ config: config({ BERTH_EDGE: "builtin", BERTH_EDGE_PORT: "80" }), parts: installed }),
    "builtin",
  );
  assert.throws(
    () => edgeKind({ config: config({ BERTH_EDGE: "haproxy" }), parts: lacking }),
    /apt-get install haproxy/,
  );
});
