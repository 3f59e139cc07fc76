import assert from "node:assert/strict";
import { test } from "node:test";
import { fieldsOf, hasFields } from "./log-fields.ts";

test("the fields of a JSON line are named by their keys; arrays and empty objects are values", () => {
  const line = `  {"msg":"a \\"b\\"","req":{"method":"GET","headers":{"x-id":"7"}},"ms":1.5,"user":null,"ok":true,"tags":["a",1],"ctx":{}}\r`;
  assert.deepEqual(
    fieldsOf(line)?.map(({ name, value }) => `${name}=${value}`),
    ['msg=a "b"', "req.method=GET", "req.headers.x-id=7", "ms=1.5", "user=null", "ok=true", 'tags=["a",1]', "ctx={}"],
  );
});

test("lines that are no JSON object have no fields", () => {
  for (const line of ["", "plain", "[1]", '"{}"', "{broken}", '{"cut":"at 10 000 by', "{ not } json {}"])
    assert.equal(fieldsOf(line), undefined, line);
  assert.deepEqual(fieldsOf("{}"), []);
  assert.equal(
    fieldsOf(JSON.stringify(Object.fromEntries(Array.from({ length: 999 }, (_, n) => [n, n]))))?.length,
    200,
  );
});

test("a field is found whole, not by the beginning of its value", () => {
  const line = `{"status": 500, "req": {"url": "/a=b"}, "a=b": "c"}`;
  for (const field of ["status=500", "req.url=/a=b", "a=b=c"]) assert.ok(hasFields(line, [field]), field);
  for (const field of ["status=50", "status", "url=/a=b", "Status=500"]) assert.ok(!hasFields(line, [field]), field);
  assert.ok(hasFields(line, ["status=500", "a=b=c"]));
  assert.ok(!hasFields(line, ["status=500", "a=b"]));
});
