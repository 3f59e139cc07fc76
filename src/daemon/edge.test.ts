import assert from "node:assert/strict";
import { test } from "node:test";
import { readConfig } from "./config.ts";
import { edgeKind } from "./edge.ts";

const config = (environment: Record<string, string>, isRoot = true) => ({ ...readConfig(environment), isRoot });
const installed = { haproxy: "/usr/sbin/haproxy", setpriv: "/usr/bin/setpriv" };
const lacking = { haproxy: null, setpriv: null };

test("HAProxy carries the traffic by itself where it is installed and Berth runs as root", () => {
  assert.equal(edgeKind({ config: config({}), parts: installed }), "haproxy");
  assert.equal(edgeKind({ config: config({}), parts: lacking }), "builtin");
  assert.equal(edgeKind({ config: config({}, false), parts: installed }), "builtin");
});

test("a setting chooses the edge, and a missing HAProxy is named with its remedy", () => {
  assert.equal(edgeKind({ config: config({ BERTH_EDGE: "haproxy" }, false), parts: installed }), "haproxy");
  assert.equal(edgeKind({ config: config({ BERTH_EDGE: "builtin" }), parts: installed }), "builtin");
  assert.throws(
    () => edgeKind({ config: config({ BERTH_EDGE: "haproxy" }), parts: lacking }),
    /apt-get install haproxy/,
  );
});
