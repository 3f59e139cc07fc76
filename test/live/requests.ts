import fc from "fast-check";
import { schemaArbitrary } from "./schema-arbitrary.ts";

// oxlint-disable-next-line typescript/no-explicit-any
type Json = any;

/** One request of the fuzzer. */
export interface FuzzedRequest {
  readonly operation: string;
  readonly method: string;
  readonly path: string;
  readonly as: string;
  readonly body?: unknown;
  readonly headers: Readonly<Record<string, string>>;
}

/** Names of existing resources, by the parameter that takes them. */
export type Pool = Readonly<Record<string, readonly string[]>>;

export interface Fuzzing {
  readonly document: Json;
  readonly callers: readonly string[];
  readonly pool: Pool;
  /** Operations that start processes or copy databases; most requests to them are dry runs. */
  readonly heavy: readonly string[];
}

/** Generates requests to every operation of the document: half of them valid, the others wrong in one or all parts. */
export function requests({ document, callers, pool, heavy }: Fuzzing): fc.Arbitrary<FuzzedRequest> {
  const all = Object.entries(document.paths as Json).flatMap(([template, methods]) =>
    Object.entries(methods as Json).map(([method, described]) => ({
      template,
      method: method.toUpperCase(),
      described: described as Json,
    })),
  );
  return fc.oneof(...all.map((one) => request(one, { document, callers, pool, heavy })));
}

interface Operation {
  readonly template: string;
  readonly method: string;
  readonly described: Json;
}

function request(
  { template, method, described }: Operation,
  { document, callers, pool, heavy }: Fuzzing,
): fc.Arbitrary<FuzzedRequest> {
  const parameters = (described.parameters as Json[])
    .map((one) => (one.$ref === undefined ? one : document.components.parameters[one.$ref.split("/").at(-1)]))
    .filter(({ name }) => !lasting.includes(name));
  const isHeavy = heavy.includes(described.operationId);
  const parts = {
    path: fc.record(Object.fromEntries(named(parameters, "path").map(({ name }) => [name, pathValue(name, pool)]))),
    query: fc.record(
      Object.fromEntries(named(parameters, "query").map((one) => [one.name, queryValue(one, document)])),
    ),
    as: fc.constantFrom(...callers),
    // fetch sends no body with GET.
    body: method === "GET" ? fc.constant<FuzzedBody>({}) : bodyOf(described, document),
    headers: headersOf(method),
    isDryRun: isHeavy ? fc.integer({ min: 0, max: 49 }).map((number) => number > 0) : fc.constant(false),
    more: fc.oneof({ weight: 9, arbitrary: fc.constant("") }, { weight: 1, arbitrary: fc.webQueryParameters() }),
  };
  return fc.record(parts).map(({ path, query, as, body, headers, isDryRun, more }) => {
    const filled = template.replaceAll(
      /\{(\w+)\}/g,
      (_, name: string) => (path as Record<string, string>)[name] as string,
    );
    const texts = Object.entries(query as Record<string, string[]>).flatMap(([name, values]) =>
      values.map((value) => `${name}=${encodeURIComponent(value)}`),
    );
    const asked = isDryRun ? [...texts.filter((text) => !text.startsWith("dry_run=")), "dry_run=true"] : texts;
    const search = [...asked, ...(more === "" || isDryRun ? [] : [more])].join("&");
    return {
      operation: described.operationId,
      method,
      path: `${filled}${search === "" ? "" : `?${search}`}`,
      as,
      ...body,
      headers: { ...headers, ...body.headers },
    };
  });
}

// With these parameters a response lasts as long as the client reads it.
const lasting = ["follow", "wait"];

function named(parameters: readonly Json[], where: string): readonly Json[] {
  return parameters.filter((one) => one.in === where);
}

// Hostile segments, encoded because a URL drops plain dot segments before the request is sent.
const wildSegments = [
  "%00",
  "%2e%2e%2f",
  "%E0%A4%A",
  "%F0%9F%9A%A2",
  "null",
  "-1",
  "'%3B--",
  "%20",
  "x".repeat(300),
  "__proto__",
  "%0d%0aset-cookie:%20x",
];

function pathValue(name: string, pool: Pool): fc.Arbitrary<string> {
  const known = pool[name] ?? [];
  const wild = fc.oneof(
    fc.constantFrom(...wildSegments),
    fc.string({ minLength: 1, maxLength: 50, unit: "binary" }).map(encoded),
  );
  return known.length === 0
    ? wild
    : fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...known).map(encoded) }, { weight: 1, arbitrary: wild });
}

function encoded(text: string): string {
  const whole = encodeURIComponent(text.toWellFormed());
  return whole === "." || whole === ".." ? "%2E%2E%2E" : whole;
}

const wildText = fc.oneof(
  fc.string({ maxLength: 60, unit: "binary" }).map((text) => text.toWellFormed()),
  fc.constantFrom(
    "",
    "0",
    "-1",
    "1e9",
    "999999999999",
    "true",
    "null",
    "\0",
    "'; drop table project; --",
    "%",
    "_",
    "\\",
    "9".repeat(400),
  ),
);

function queryValue({ schema }: Json, document: Json): fc.Arbitrary<readonly string[]> {
  const right = schemaArbitrary(schema, document).map((value) =>
    Array.isArray(value) ? value.join(",") : typeof value === "string" ? value : JSON.stringify(value),
  );
  return fc.oneof(
    { weight: 6, arbitrary: fc.constant([]) },
    { weight: 5, arbitrary: right.map((value) => [value.toWellFormed()]) },
    { weight: 2, arbitrary: wildText.map((value) => [value]) },
    { weight: 1, arbitrary: fc.tuple(wildText, wildText) },
  );
}

interface FuzzedBody {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

function bodyOf(described: Json, document: Json): fc.Arbitrary<FuzzedBody> {
  const content: Json = described.requestBody?.content ?? {};
  const schema = content["application/json"]?.schema;
  const anything = fc.jsonValue({ maxDepth: 4 }).map((body) => ({ body }));
  if (schema === undefined && described.requestBody !== undefined) return fileOf(Object.keys(content));
  if (schema === undefined)
    return fc.oneof({ weight: 12, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: anything });
  const right = schemaArbitrary(schema, document);
  return fc.oneof(
    { weight: 8, arbitrary: right.map((body) => ({ body })) },
    {
      weight: 4,
      arbitrary: fc
        .tuple(right, fc.string({ maxLength: 12 }), fc.jsonValue({ maxDepth: 3 }), fc.boolean())
        .map(twisted),
    },
    { weight: 2, arbitrary: anything },
    {
      weight: 1,
      arbitrary: fc.string({ maxLength: 40, unit: "binary" }).map((text) => ({ body: `{${text.toWellFormed()}` })),
    },
    { weight: 1, arbitrary: fc.constant({ body: "x=1", headers: { "content-type": "text/plain" } }) },
    { weight: 1, arbitrary: fc.constant({}) },
  );
}

/** Generates a few bytes with one of the content types that the operation accepts, or with another one. */
function fileOf(types: readonly string[]): fc.Arbitrary<FuzzedBody> {
  const body = fc.string({ maxLength: 600, unit: "binary" }).map((text) => text.toWellFormed());
  const type = fc.constantFrom(...types, "text/plain");
  return fc.record({ body, headers: type.map((each) => ({ "content-type": each })) });
}

/** Adds an undeclared field to a valid body, or replaces a field with a value of another type. */
function twisted([body, name, value, isReplaced]: [unknown, string, unknown, boolean]): FuzzedBody {
  if (typeof body !== "object" || body === null) return { body: value };
  const [first = name] = Object.keys(body);
  return { body: { ...body, [isReplaced ? first : name]: value } };
}

function headersOf(method: string): fc.Arbitrary<Record<string, string>> {
  const key = fc.string({ minLength: 1, maxLength: 300, unit: fc.constantFrom(..."abcXYZ019-_~! é") });
  const few: fc.Arbitrary<Record<string, string>>[] = [
    fc.constant({ accept: "text/html" }),
    fc.constant({ "x-forwarded-for": "203.0.113.1", "x-organization": "acme" }),
    fc.constant({ "if-none-match": "*", range: "bytes=0-1" }),
    ...(method === "GET" ? [] : [key.map((text) => ({ "idempotency-key": text.trim() === "" ? "k" : text.trim() }))]),
  ];
  return fc.oneof({ weight: 8, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: fc.oneof(...few) });
}
