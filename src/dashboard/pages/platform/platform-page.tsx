import { Link } from "@tanstack/react-router";
import type { Answer } from "../../../contract/client.ts";
import { useCall, useMe } from "../../data/api.ts";
import { bytes, count, duration, plural } from "../../data/format.ts";
import { Page, Section, View } from "../../ui/page.tsx";
import { State, Fact, Plain } from "../../ui/text.tsx";
import { Table, timeColumn } from "../../ui/table.tsx";
import { Providers } from "../providers/providers.tsx";
import { Isolation } from "./isolation.tsx";
import { Machines } from "./machines.tsx";
import { NeedsYou } from "./needs-you.tsx";
import { UseOverTime } from "./use-over-time.tsx";
import { PlatformBackups, Upgrade } from "./upkeep.tsx";

type Overview = Answer<"platform.overview">;

/** The operator's page: what needs the operator first, then what runs, on which machines, and which projects fail most. */
export function PlatformPage() {
  const overview = useCall("platform.overview", {}, { pollMs: 15_000 });
  return (
    <Page title="Platform">
      <View of={overview}>
        {(data) => (
          <>
            <NeedsYou data={data} />
            <Upgrade />
            <Totals data={data} />
            <UseOverTime />
            <Machines />
            {data.machines.map((machine) => (
              <Machine key={machine.name} machine={machine} />
            ))}
            <Troubled data={data} />
            <PlatformBackups />
            <LastDrills drills={data.last_drills} />
            <Providers />
          </>
        )}
      </View>
    </Page>
  );
}

function Totals({ data }: { readonly data: Overview }) {
  const { capacity, deployments_today: today } = data;
  return (
    <dl className="grid grid-cols-2 gap-5 rounded-md border border-line p-5 sm:grid-cols-3 lg:grid-cols-5">
      <Fact label="Status">
        <Link to="/operator/status" className="hover:underline">
          <State of={data.status} />
        </Link>
      </Fact>
      <Fact label="Version">
        {data.commit === null ? data.version : `${data.version} (${data.commit.slice(0, 8)})`}
        {data.newer_version !== null && `; ${data.newer_version} is there: berth platform upgrade`}
      </Fact>
      <Fact label="Organizations">
        {count(data.organizations.total)}
        {data.organizations.suspended > 0 && `, ${data.organizations.suspended} suspended`}
      </Fact>
      <Fact label="Projects serving">
        {data.projects.serving} of {data.projects.total}
      </Fact>
      <Fact label="Replicas">{count(data.replicas)}</Fact>
      <Fact label="Deployments today">
        {today.succeeded} good{today.failed > 0 && <span className="text-bad">, {today.failed} failed</span>}
      </Fact>
      <Fact label="Databases">
        {data.databases.ready} of {data.databases.total} ready
      </Fact>
      <Fact label="Backups">
        {count(data.backups.total)} ({bytes(data.backups.size_bytes)})
      </Fact>
      <Fact label="Memory of replicas">
        <Promised share={capacity.memory_bytes} format={bytes} />
      </Fact>
      <Fact label="Processors of replicas">
        <Promised share={capacity.cpus} format={count} />
      </Fact>
    </dl>
  );
}

interface PromisedProps {
  readonly share: Overview["capacity"]["cpus"];
  readonly format: (value: number) => string;
}

function Promised({ share: { requested, available }, format }: PromisedProps) {
  return (
    <>
      up to {format(requested)} of {format(available)}
      {requested > available && <span className="text-warn"> · over-committed</span>}
    </>
  );
}

function Machine({ machine }: { readonly machine: Overview["machines"][number] }) {
  const { disk } = machine;
  return (
    <Section title={`Machine ${machine.name}`}>
      <div className="flex flex-col gap-4 rounded-md border border-line p-5">
        <dl className="grid grid-cols-2 gap-5 sm:grid-cols-5">
          <Fact label="Up for">{duration(machine.uptime_seconds * 1000)}</Fact>
          <Fact label="Processors, memory">
            {machine.cpus}, {bytes(machine.memory_bytes)}
          </Fact>
          <Fact label="Disk free">
            {bytes(disk.available_bytes)} of {bytes(disk.total_bytes)}
          </Fact>
          <Fact label="Roles">{machine.roles.join(", ") || "none now"}</Fact>
          {machine.runtime === "none" ? null : (
            <Fact label="Runtime, network">
              {machine.runtime}, {machine.network}
            </Fact>
          )}
        </dl>
        <div hidden={machine.runtime === "none"}>
          <p className="mb-1 text-xs text-faint">How applications are kept apart</p>
          <Isolation of={machine.isolation} />
        </div>
      </div>
    </Section>
  );
}

/** What failed of a project, in words; what did not fail is left out. */
function Failed({ of }: { readonly of: Overview["most_failing"][number] }) {
  const { errors, crashes, failed_deployments: deployments, failed_cron_runs: runs } = of;
  const parts = [
    ...(errors > 0 ? [plural(errors, "error response")] : []),
    ...(crashes > 0 ? [plural(crashes, "crash", "crashes")] : []),
    ...(deployments > 0 ? [plural(deployments, "deployment")] : []),
    ...(runs > 0 ? [plural(runs, "cron run")] : []),
  ];
  return <span className="whitespace-normal">{parts.join(", ")}</span>;
}

/** Shows a project's name, as a link if it is of the operator's own organization, the only one whose projects have pages here. */
function Named({ of: { organization, project } }: { readonly of: { organization: string; project: string } }) {
  const name = `${organization}/${project}`;
  if (organization !== useMe().organization.slug) return name;
  return (
    <Link to="/projects/$slug" params={{ slug: project }} className="hover:text-accent hover:underline">
      {name}
    </Link>
  );
}

function Troubled({ data }: { readonly data: Overview }) {
  return (
    <div className="grid gap-5 lg:grid-cols-2">
      <Section title="Failing most, 24 hours">
        {data.most_failing.length === 0 ? (
          <p className="text-sm text-muted">
            No project had an error response, a crash, or a failed deployment or cron run.
          </p>
        ) : (
          <Table
            caption="Failing most"
            rows={data.most_failing}
            keyOf={({ organization, project }) => `${organization}/${project}`}
            columns={[
              { head: "Project", cell: (project) => <Named of={project} /> },
              { head: "Failed", grow: true, cell: (project) => <Failed of={project} /> },
            ]}
          />
        )}
      </Section>
      <Section title="Slowest, 24 hours">
        {data.slowest.length === 0 ? (
          <p className="text-sm text-muted">No project answered ten requests or more.</p>
        ) : (
          <Table
            caption="Slowest"
            rows={data.slowest}
            keyOf={({ organization, project }) => `${organization}/${project}`}
            columns={[
              { head: "Project", grow: true, cell: (project) => <Named of={project} /> },
              { head: "Requests", end: true, cell: ({ requests }) => count(requests) },
              { head: "Mean", end: true, cell: ({ mean_ms: mean }) => duration(mean) },
            ]}
          />
        )}
      </Section>
    </div>
  );
}

type Drill = Answer<"platform.overview">["last_drills"][number];

interface LastDrillsProps {
  readonly drills: readonly Drill[];
}

/** The newest trial restore of each database. */
function LastDrills({ drills }: LastDrillsProps) {
  return (
    <Section title="Last drills" lead="Trial restores of databases from their archives, one each day.">
      {drills.length === 0 ? (
        <p className="text-sm text-muted">None yet: the first one follows the first copy of a database's archive.</p>
      ) : (
        <Table
          caption="Last drills"
          rows={drills}
          keyOf={({ organization, project }) => `${organization}/${project}`}
          columns={[
            { head: "State", cell: ({ status }) => <State of={status} /> },
            {
              head: "Database of",
              grow: true,
              cell: ({ organization, project, problem }) => (
                <>
                  {`${organization}/${project}`} {problem !== null && <Plain className="text-muted">{problem}</Plain>}
                </>
              ),
            },
            timeColumn<Drill>("When", ({ created_at: at }) => at),
          ]}
        />
      )}
    </Section>
  );
}
