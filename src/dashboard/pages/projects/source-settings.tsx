import { useCall } from "../../data/api.ts";
import type { Project } from "../../data/project.ts";
import { Section } from "../../ui/page.tsx";
import { Tag } from "../../ui/status.tsx";
import { Table, type Column } from "../../ui/table.tsx";
import { Mono } from "../../ui/text.tsx";

interface Setting {
  readonly name: string;
  readonly value: string;
  readonly setBy: "this page" | "berth.json" | "default";
}

/** Fields of berth.json, each with the default that applies if neither the file nor the project sets it. */
const fields = [
  ["root", "the whole repository"],
  ["watch", "the root folder"],
  ["port", "$PORT"],
  ["health_path", "the port accepts"],
  ["build", "what the language's files say"],
  ["start", "what the language's files say"],
  ["release", "none"],
  ["processes", "the Procfile's"],
  ["crons", "none"],
] as const;

const ofProject: readonly string[] = ["root", "watch", "port", "health_path"] satisfies (keyof Project)[];

/** Shows the settings of the next deployment, and where each value comes from. */
export function SourceSettings({ project }: { readonly project: Project }) {
  const { slug } = project;
  const files = useCall("builds.source", { params: { slug } });
  const root = project.root ?? "";
  const path = root === "" ? "berth.json" : `${root}/berth.json`;
  const exists = files.data?.files.some((file) => file.path === path) === true;
  const source = useCall("builds.source", { params: { slug }, query: { path } }, { enabled: exists });
  return (
    <Section
      title="Settings of the next deployment"
      lead="A value set on this page wins over the repository's berth.json, and that over the default."
    >
      <Table
        caption="Settings in force"
        rows={settingsOf(project, source.data?.text ?? null)}
        columns={columns}
        keyOf={({ name }) => name}
      />
    </Section>
  );
}

const columns: readonly Column<Setting>[] = [
  { head: "Setting", cell: ({ name }) => <Mono className="font-medium">{name}</Mono> },
  {
    head: "Value",
    grow: true,
    cell: ({ value, setBy }) =>
      setBy === "default" ? (
        <span className="text-faint max-sm:whitespace-normal">{value}</span>
      ) : (
        <Mono className="max-sm:wrap-anywhere max-sm:whitespace-normal">{value}</Mono>
      ),
  },
  {
    head: "Set by",
    end: true,
    cell: ({ setBy }) => (setBy === "default" ? <span className="text-faint">default</span> : <Tag>{setBy}</Tag>),
  },
];

function settingsOf(project: Project, text: string | null): Setting[] {
  const own = project as unknown as Readonly<Record<string, unknown>>;
  const file = fieldsOf(text);
  return fields.map(([name, standard]) => {
    if (ofProject.includes(name) && own[name] !== null) return { name, value: shown(own[name]), setBy: "this page" };
    if (Object.hasOwn(file, name)) return { name, value: shown(file[name]), setBy: "berth.json" };
    return { name, value: standard, setBy: "default" };
  });
}

// The build reports what is wrong with the file, so here an invalid one counts as empty.
function fieldsOf(text: string | null): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse((text ?? "{}").replace(/^\uFEFF/, ""));
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function shown(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value) && value.every((each) => typeof each === "string")) return value.join(", ");
  return JSON.stringify(value) ?? "";
}
