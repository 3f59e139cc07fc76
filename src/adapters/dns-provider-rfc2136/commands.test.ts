import assert from "node:assert/strict";
import { test } from "node:test";
import { nsupdateCommand, updateText } from "./commands.ts";

const server = { host: "192.0.2.1", port: 5353 };
const record = { name: "_acme-challenge.apps.example.com", value: "a-_b" };

test("nsupdate gets the key by its file, and one change on its standard input", () => {
  assert.deepEqual(nsupdateCommand("/usr/bin/nsupdate", "/etc/key").args, ["-v", "-t", "10", "-k", "/etc/key"]);
  const added = 'server 192.0.2.1 5353\nupdate add _acme-challenge.apps.example.com. 60 TXT "a-_b"\nsend\n';
  assert.equal(updateText(server, "add", record), added);
  const removed = 'server 192.0.2.1 5353\nupdate delete _acme-challenge.apps.example.com. TXT "a-_b"\nsend\n';
  assert.equal(updateText(server, "delete", record), removed);
});

test("what an authority sends cannot become another command", () => {
  for (const value of ['a"\nupdate delete example.com. SOA', "a b", "", "a\\"])
    assert.throws(() => updateText(server, "add", { ...record, value }), /not a record/);
  assert.throws(() => updateText(server, "add", { ...record, name: "a\nquit" }), /not a record/);
});
