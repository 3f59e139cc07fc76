import assert from "node:assert/strict";
import { networkInterfaces } from "node:os";
import { test } from "node:test";
import { createAddressGuard, isNetwork, privateUrlProblem } from "./reachable-addresses.ts";

const closed = [
  ...["127.0.0.1", "0.0.0.0", "10.1.2.3", "172.31.0.1", "192.168.1.1", "100.64.0.1", "169.254.169.254"],
  ...["168.63.129.16", "100.100.100.200", "224.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fd00:ec2::254"],
  ...[
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::7f00:1",
    "::ffff:0:7f00:1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "ff02::1",
    "localhost",
    "",
  ],
];

test("loopback, private, link-local and metadata addresses are closed, in every spelling", () => {
  const mayReach = createAddressGuard([]);
  for (const address of closed) assert.equal(mayReach(address), false, address);
});

test("public addresses are open, but for this machine's own", () => {
  const mayReach = createAddressGuard([]);
  for (const address of ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8"])
    assert.equal(mayReach(address), true, address);
  for (const { address } of Object.values(networkInterfaces()).flatMap((each) => each ?? []))
    assert.equal(mayReach(address), false, address);
});

test("the operator opens networks and single addresses, and nothing beside them", () => {
  const mayReach = createAddressGuard(["10.1.0.0/16", "::1", "192.168.7.7"]);
  for (const address of ["10.1.255.1", "::1", "192.168.7.7"]) assert.equal(mayReach(address), true, address);
  for (const address of ["10.2.0.1", "127.0.0.1", "192.168.7.8"]) assert.equal(mayReach(address), false, address);
});

test("a URL of a private address is refused in every spelling, unless the operator opens its network", () => {
  for (const host of [
    "127.1",
    "0x7f.1",
    "2130706433",
    "10.0.0.5",
    "[::1]",
    "[fd00::1]",
    "localhost",
    "a.localhost",
    "192.168.1.1:8080",
  ])
    for (const url of [`https://${host}/x`, `ssh://git@${host}/x`])
      assert.match(privateUrlProblem(url) ?? "", /BERTH_OUTGOING_NETWORKS/, url);
  for (const url of ["https://example.com/x", "ssh://git@8.8.8.8/x", "https://localhost.example.com"])
    assert.equal(privateUrlProblem(url), undefined, url);
  assert.equal(privateUrlProblem("https://127.0.0.1:1/x", ["127.0.0.0/8"]), undefined);
});

test("a network is an address, with or without its length", () => {
  for (const text of ["10.0.0.0/8", "10.0.0.1", "fd00::/8", "::1"]) assert.ok(isNetwork(text), text);
  for (const text of ["10.0.0.0/33", "10.0.0.0/", "10.0.0.0/8/8", "example.com", "", "::/129", "10.0.0.0/-1"])
    assert.ok(!isNetwork(text), text);
});
