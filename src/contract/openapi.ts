import { z } from "zod";
import { approval } from "./approvals.ts";
import { build } from "./builds.ts";
import { database } from "./database.ts";
import { deployment, deploymentSummary } from "./deployments.ts";
import { errors, type ErrorCode } from "./errors.ts";
import { failure } from "./failure.ts";
import { limits } from "./limits.ts";
import { organization } from "./orgs.ts";
import { project } from "./projects.ts";
import { routes } from "./routes.ts";
import { sshKey } from "./ssh-keys.ts";
import { dryRun } from "./dry-run.ts";
import { changes, errorsOf, type Row } from "./table.ts";
import { approvalStates, statesOf } from "./states.ts";
import { apiToken } from "./tokens.ts";

// Anyone may request the document without a token and building it is slow, so it is built once, at the first request.
let rest: Json | undefined;

/** Builds the OpenAPI 3.1 document of the API from its rows. */
export function openapi(version: string): Json & { openapi: string } {
  const info = {
    title: "Berth control API",
    version,
    description,
    license: { name: "Apache-2.0", identifier: "Apache-2.0" },
  };
  rest ??= describeRest();
  return { openapi: "3.1.0", info, ...rest };
}

type Json = Record<string, unknown>;

const limited = Object.fromEntries(
  ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"].map((name) => [
    name,
    { $ref: `#/components/headers/${name}` },
  ]),
);
const whole = { type: "integer", minimum: 0 };

const headers: Json = {
  "RateLimit-Limit": { description: "How many requests of this kind the token may make in a minute.", schema: whole },
  "RateLimit-Remaining": { description: "How many of them are left in this minute.", schema: whole },
  "RateLimit-Reset": { description: "Seconds until the count starts again.", schema: whole },
  "Retry-After": { description: "Seconds to wait before the next attempt.", schema: whole },
  "Idempotency-Replayed": {
    description: "The response is a copy of the one to an earlier request with this Idempotency-Key.",
    schema: { type: "string", const: "true" },
  },
};

/** Parameters that every write accepts beside its own. */
const ofWrites: Json = {
  IdempotencyKey: {
    name: "Idempotency-Key",
    in: "header",
    required: false,
    description:
      "Identifies the request: a repetition with the same key within a day gets the first response again and changes nothing.",
    schema: { type: "string", minLength: 1, maxLength: limits.idempotency_key_characters, pattern: "^[\\x21-\\x7e]+$" },
  },
  DryRun: {
    name: "dry_run",
    in: "query",
    required: false,
    description: "`true`: check the request, change nothing, and return what would happen.",
    schema: { type: "boolean", default: false },
  },
};
const ofWritesHere = Object.keys(ofWrites).map((name) => ({ $ref: `#/components/parameters/${name}` }));

const description = [
  "Berth deploys applications and runs them with databases, logs and rollback.",
  "Send `Authorization: Bearer <token>`. Errors are `{error, code}`; `GET /v1/capabilities` lists every code.",
  "Every write takes an `Idempotency-Key` and `?dry_run=true`.",
].join(" ");

const nouns = [...new Set(routes.map((row) => nounOf(row)))];

/** Schemas that go into `components` under a name; all others are inlined. */
const namedSchemas: readonly (readonly [string, z.ZodType])[] = [
  ["ApiToken", apiToken],
  ["Approval", approval],
  ["Build", build],
  ["Database", database],
  ["Deployment", deployment],
  ["DeploymentSummary", deploymentSummary],
  ["Failure", failure],
  ["Organization", organization],
  ["Project", project],
  ["Rehearsal", dryRun],
  ["SshKey", sshKey],
];

const registry = z.registry<{ id?: string | undefined }>();
for (const [id, schema] of namedSchemas) registry.add(schema, { id });

const errorSchema: Json = {
  type: "object",
  description: "Every error has this form.",
  required: ["error", "code"],
  properties: {
    error: { type: "string", description: "What happened, as a sentence for people." },
    code: { type: "string", enum: Object.keys(errors) },
    hint: { type: "string", description: "What to do next." },
    details: {
      type: "array",
      description: "Each wrong field of a malformed request.",
      items: {
        type: "object",
        required: ["path", "message"],
        properties: { path: { type: "string" }, message: { type: "string" } },
      },
    },
    foreign: {
      type: "boolean",
      enum: [true],
      description: "`error` and `details` quote text of others, such as names and rows in a database.",
    },
    next: {
      type: "object",
      description: "The API call that helps next.",
      required: ["route", "method", "path"],
      properties: { route: { type: "string" }, method: { type: "string" }, path: { type: "string" } },
    },
    approval: {
      type: "object",
      description: "Only with approval_required and approval_denied: the approval request that a human decides.",
      required: ["id", "status", "expires_at"],
      properties: {
        id: { type: "string" },
        status: { type: "string", enum: statesOf(approvalStates) },
        expires_at: { type: ["string", "null"], format: "date-time" },
      },
    },
  },
};

/** The parts of the document that operations refer to, as they are collected. */
interface Components {
  readonly schemas: Json;
  readonly responses: Json;
}

function operation(row: Row, { schemas: components, responses }: Components): Json {
  return {
    operationId: row.name,
    tags: [nounOf(row)],
    summary: row.summary,
    description: rights(row),
    security: row.access === "public" ? [] : [{ token: [] }],
    parameters: [
      ...parameters("path", row.params),
      ...parameters("query", row.query),
      ...(changes(row) ? ofWritesHere : []),
    ],
    ...(row.upload === null ? {} : { requestBody: { required: true, content: files[row.upload] } }),
    ...(row.body === null
      ? {}
      : {
          requestBody: {
            required: !row.body.safeParse({}).success,
            content: content(schemaOf(row.body, "input", components)),
          },
        }),
    responses: { ...successes(row, components), ...failures(row, responses) },
    "x-access": row.access,
    "x-scope": row.scope,
    ...(row.further_scopes.length === 0 ? {} : { "x-further-scopes": row.further_scopes }),
  };
}

const binary = { schema: { type: "string", format: "binary" } };
const files = {
  archive: { "application/x-tar": binary, "application/gzip": binary },
  file: { "application/octet-stream": binary },
};

function rights(row: Row): string {
  const who = {
    public: "No token needed.",
    member: "Any token of the organization.",
    owner: "Owners only.",
    operator: "Platform admins only.",
  }[row.access];
  const asked = [...(row.scope === null ? [] : [row.scope]), ...row.further_scopes].map((scope) => `\`${scope}\``);
  if (asked.length === 0) return who;
  return `${who} ${asked.length === 1 ? "Scope" : "Scopes"}: ${asked.join(", ")}.`;
}

function parameters(where: "path" | "query", schema: z.ZodObject): Json[] {
  return Object.entries(schema.shape).map(([name, field]) => ({
    name,
    in: where,
    required: where === "path",
    // A query value arrives as text, so the document describes the number or flag that it is parsed to.
    schema: schemaOf(field as z.ZodType, where === "query" ? "output" : "input", {}),
  }));
}

function successes(row: Row, components: Json): Json {
  const own = row.result === null ? undefined : schemaOf(row.result, "output", components);
  const events = row.streams ? { "text/event-stream": { schema: { type: "string" } } } : {};
  const dryRunSchema = changes(row) ? schemaOf(dryRun, "output", components) : undefined;
  const replayed = changes(row)
    ? { "Idempotency-Replayed": { $ref: "#/components/headers/Idempotency-Replayed" } }
    : {};
  const answers = row.success.map((status) => [
    status,
    {
      description: status === 204 ? "Done." : row.summary,
      headers: { ...limited, ...replayed },
      ...(own === undefined || status === 204 ? {} : { content: { ...content(own), ...events } }),
    },
  ]);
  const all = Object.fromEntries(answers) as Record<number, { description: string; content?: Json }>;
  if (dryRunSchema === undefined) return all;
  // A dry run responds with 200, whatever status the row itself uses.
  const { description: said = "What would happen, with `?dry_run=true`.", ...rest } = all[200] ?? { headers: limited };
  const either = row.success.includes(200) && own !== undefined ? { anyOf: [own, dryRunSchema] } : dryRunSchema;
  return { ...all, 200: { description: said, ...rest, content: content(either) } };
}

/** Returns one error response per status; its description lists the codes with that status. Rows with the same codes share it. */
function failures(row: Row, responses: Json): Json {
  const byStatus = Map.groupBy(errorsOf(row), (code: ErrorCode) => errors[code].status);
  const entries = [...byStatus].sort(([a], [b]) => a - b);
  return Object.fromEntries(
    entries.map(([status, codes]) => {
      const text = codes.map((code) => `\`${code}\`: ${errors[code].meaning}`).join("\n\n");
      const again = [409, 429, 503].includes(status)
        ? { "Retry-After": { $ref: "#/components/headers/Retry-After" } }
        : {};
      const body = content({ $ref: "#/components/schemas/Error" });
      const name = codes.join(".");
      responses[name] = { description: text, headers: again, content: body };
      return [status, { $ref: `#/components/responses/${name}` }];
    }),
  );
}

function content(schema: Json): Json {
  return { "application/json": { schema } };
}

/** Converts a zod schema to JSON schema. Named schemas go into `components` and are referenced. */
function schemaOf(schema: z.ZodType, io: "input" | "output", components: Json): Json {
  const made = z.toJSONSchema(schema, {
    io,
    metadata: registry,
    unrepresentable: "any",
    override: ({ zodSchema, jsonSchema }) => tidy(Object.assign(jsonSchema, z.globalRegistry.get(zodSchema)), io),
  }) as Json;
  const moved = JSON.parse(JSON.stringify(made).replaceAll('"#/$defs/', '"#/components/schemas/')) as Json;
  const { $defs = {}, $schema: _, ...body } = moved;
  for (const [name, definition] of Object.entries($defs as Record<string, Json>)) {
    const { id: _id, ...named } = definition;
    components[name] = named;
  }
  const { id: _id, ...root } = body;
  return root;
}

// Drops zod's long `pattern` where `format` says the same, and allows additional fields in responses, which may gain some.
function tidy(schema: Json, io: "input" | "output"): void {
  if (schema["format"] !== undefined) delete schema["pattern"];
  if (io === "output" && schema["additionalProperties"] === false) delete schema["additionalProperties"];
}

function nounOf(row: Pick<Row, "name">): string {
  return row.name.slice(0, row.name.indexOf("."));
}

function sorted(object: Json): Json {
  return Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function describeRest(): Json {
  const components: Components = { schemas: { Error: errorSchema }, responses: {} };
  const paths: Record<string, Json> = {};
  for (const row of routes as readonly Row[]) {
    const path = row.path.replaceAll(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [row.method.toLowerCase()]: operation(row, components) };
  }
  return {
    servers: [{ url: "/" }],
    tags: nouns.map((name) => ({ name })),
    paths,
    components: {
      schemas: sorted(components.schemas),
      responses: sorted(components.responses),
      parameters: ofWrites,
      headers,
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
    },
  };
}
