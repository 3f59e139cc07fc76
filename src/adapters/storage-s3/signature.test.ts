import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyHash, encodePath, encodeQuery, hashHex, signedHeaders, type UnsignedRequest } from "./signature.ts";

// The examples that AWS publishes ("Signature Calculations for the Authorization Header: Transferring Payload in a Single Chunk").
const signer = {
  accessKeyId: "AKIAIOSFODNN7EXAMPLE",
  secretKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
  region: "us-east-1",
};
const now = new Date("2013-05-24T00:00:00.000Z");
const host = "examplebucket.s3.amazonaws.com";

const examples: readonly (readonly [name: string, request: Omit<UnsignedRequest, "host">, signature: string])[] = [
  [
    "GET object",
    { method: "GET", path: "/test.txt", headers: { Range: "bytes=0-9" }, payloadHash: emptyHash },
    "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
  ],
  [
    "PUT object",
    {
      method: "PUT",
      path: "/test$file.text",
      headers: { Date: "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY" },
      payloadHash: hashHex("Welcome to Amazon S3."),
    },
    "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
  ],
  [
    "GET bucket lifecycle",
    { method: "GET", path: "/", query: { lifecycle: "" }, payloadHash: emptyHash },
    "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
  ],
  [
    "GET bucket (list objects)",
    { method: "GET", path: "/", query: { prefix: "J", "max-keys": "2" }, payloadHash: emptyHash },
    "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
  ],
];

for (const [name, request, signature] of examples) {
  test(`signs the published example "${name}"`, () => {
    const { authorization } = signedHeaders(signer, { ...request, host }, now);
    assert.match(authorization ?? "", new RegExp(`Signature=${signature}$`));
  });
}

test("the secret stands in no header", () => {
  const headers = signedHeaders(signer, { method: "GET", host, path: "/", payloadHash: emptyHash }, now);
  assert.ok(!JSON.stringify(headers).includes(signer.secretKey));
});

test("paths and queries are encoded as they are signed", () => {
  assert.equal(encodePath("/a b/ü(1)/~x"), "/a%20b/%C3%BC%281%29/~x");
  assert.equal(encodeQuery({ uploadId: "a/b+=", part: "1", A: "" }), "A=&part=1&uploadId=a%2Fb%2B%3D");
});
