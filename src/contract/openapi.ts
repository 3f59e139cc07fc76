import { z } from "zod";
import { build } from "./builds.ts";
import { database } from "./database.ts";
import { deployment, deploymentSummary } from "./deployments.ts";
import { errors, type ErrorCode } from "./errors.ts";
import { failure } from "./failure.ts";
import { project } from "./projects.ts";
import { routes } from "./routes.ts";
import { sshKey } from "./ssh-keys.ts";
import { errorsOf, type Row } from "./table.ts";
import { apiToken } from "./tokens.ts";

/** The OpenAPI 3.1 description of the API, made from its rows. */
export function openapi(version: string): Json & { openapi: string } {
  const info = {
    title: "Berth control API",
    version,
    description,
    license: { name: "Apache-2.0", identifier: "Apache-2.0" },
  };
  return { openapi: "3.1.0", info, ...rest };
}

type Json = Record<string, unknown>;

const description = [
  "Deploys applications and runs them with databases, logs and rollback.",
  "Send `Authorization: Bearer <token>`. Errors are `{error, code}`; `GET /v1/capabilities` lists every code.",
].join(" ");

const nouns = [...new Set(routes.map((row) => nounOf(row)))];

/** Schemas that have a name of their own in the document; others stand where they are used. */
const namedSchemas: readonly (readonly [string, z.ZodType])[] = [
  ["ApiToken", apiToken],
  ["Build", build],
  ["Database", database],
  ["Deployment", deployment],
  ["DeploymentSummary", deploymentSummary],
  ["Failure", failure],
  ["Project", project],
  ["SshKey", sshKey],
];

const registry = z.registry<{ id?: string | undefined }>();
for (const [id, schema] of namedSchemas) registry.add(schema, { id });

const errorSchema: Json = {
  type: "object",
  description: "Every error has this form.",
  required: ["error", "code"],
  properties: {
    error: { type: "string", description: "A sentence a person can act on." },
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
  },
};

function operation(row: Row, components: Json): Json {
  return {
    operationId: row.name,
    tags: [nounOf(row)],
    summary: row.summary,
    description: rights(row),
    security: row.access === "public" ? [] : [{ token: [] }],
    parameters: [...parameters("path", row.params), ...parameters("query", row.query)],
    ...(row.body === null
      ? {}
      : {
          requestBody: {
            required: !row.body.safeParse({}).success,
            content: content(schemaOf(row.body, "input", components)),
          },
        }),
    responses: { ...successes(row, components), ...failures(row) },
    "x-access": row.access,
    "x-scope": row.scope,
  };
}

function rights(row: Row): string {
  const who = {
    public: "Needs no token.",
    member: "Any token of the organization.",
    owner: "Owners only.",
    operator: "Platform admins only.",
  }[row.access];
  return row.scope === null ? who : `${who} Scope: \`${row.scope}\`.`;
}

function parameters(where: "path" | "query", schema: z.ZodObject): Json[] {
  return Object.entries(schema.shape).map(([name, field]) => ({
    name,
    in: where,
    required: where === "path",
    // A number or flag of a query string is described as what its text means.
    schema: schemaOf(field as z.ZodType, where === "query" ? "output" : "input", {}),
  }));
}

function successes(row: Row, components: Json): Json {
  const body = row.result === null ? {} : { content: content(schemaOf(row.result, "output", components)) };
  return Object.fromEntries(
    row.success.map((status) => [status, { description: status === 204 ? "Done." : row.summary, ...body }]),
  );
}

/** One response a status; its description lists the codes that come with it. */
function failures(row: Row): Json {
  const byStatus = Map.groupBy(errorsOf(row), (code: ErrorCode) => errors[code].status);
  const entries = [...byStatus].sort(([a], [b]) => a - b);
  return Object.fromEntries(
    entries.map(([status, codes]) => {
      const text = codes.map((code) => `\`${code}\`: ${errors[code].meaning}`).join("\n\n");
      return [status, { description: text, content: content({ $ref: "#/components/schemas/Error" }) }];
    }),
  );
}

function content(schema: Json): Json {
  return { "application/json": { schema } };
}

/** The JSON schema of a zod schema; what has a name goes into `components` and is referred to. */
function schemaOf(schema: z.ZodType, io: "input" | "output", components: Json): Json {
  const made = z.toJSONSchema(schema, {
    io,
    metadata: registry,
    unrepresentable: "any",
    override: ({ jsonSchema }) => tidy(jsonSchema, io),
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

// A format says what zod's long pattern for it says, and an answer may get more fields some day.
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
  const components: Json = { Error: errorSchema };
  const paths: Record<string, Json> = {};
  for (const row of routes as readonly Row[]) {
    const path = row.path.replaceAll(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [row.method.toLowerCase()]: operation(row, components) };
  }
  return {
    servers: [{ url: "/" }],
    tags: nouns.map((name) => ({ name })),
    paths,
    components: { schemas: sorted(components), securitySchemes: { token: { type: "http", scheme: "bearer" } } },
  };
}

// Measured: describing all rows takes 6 ms, which anyone may ask for without a token, so it is done once.
const rest = describeRest();
