import type { Answer } from "../../../contract/client.ts";
import { useCall } from "../../data/api.ts";
import { bytes, count, duration } from "../../data/format.ts";
import { Page, Section } from "../../ui/page.tsx";
import { State, Tag } from "../../ui/status.tsx";
import { Table } from "../../ui/table.tsx";
import { Fact } from "../../ui/text.tsx";
import { View } from "../../ui/view.tsx";
import { Machines } from "./machines.tsx";

type Overview = Answer<"platform.overview">;

/** The operator's page: what runs on the platform, on which machines, and which projects fail most. */
export function PlatformPage() {
  const overview = useCall("platform.overview", {}, { refetchInterval: 15_000 });
  return (
    <Page title="Platform">
      <View of={overview}>
        {(data) => (
          <>
            <Totals data={data} />
            <Machines />
            {data.machines.map((machine) => (
              <Machine key={machine.name} machine={machine} />
            ))}
            <Troubled data={data} />
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
        <State of={data.status} />
      </Fact>
      <Fact label="Version">{data.version}</Fact>
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
        {count(data.backups.total)}, {bytes(data.backups.size_bytes)}
      </Fact>
      <Fact label="Memory promised">
        {bytes(capacity.memory_bytes.requested)} of {bytes(capacity.memory_bytes.available)}
      </Fact>
      <Fact label="Processors promised">
        {capacity.cpus.requested} of {capacity.cpus.available}
      </Fact>
    </dl>
  );
}

function Machine({ machine }: { readonly machine: Overview["machines"][number] }) {
  const { disk } = machine;
  return (
    <Section title={`Machine ${machine.name}`}>
      <div className="flex flex-col gap-4 rounded-md border border-line p-5">
        <dl className="grid grid-cols-2 gap-5 sm:grid-cols-4">
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
          <p className="text-xs text-faint">Isolation</p>
          <p className="mt-1 flex flex-wrap gap-1">
            {machine.isolation.map((each) => (
              <Tag key={each}>{each}</Tag>
            ))}
          </p>
        </div>
        {machine.missing.map(({ part, effect, remedy }) => (
          <p key={part} className="text-sm text-warn">
            <b className="font-medium">{part}</b>: {effect} <span className="text-muted">{remedy}</span>
          </p>
        ))}
      </div>
    </Section>
  );
}

function Troubled({ data }: { readonly data: Overview }) {
  return (
    <div className="grid gap-5 lg:grid-cols-2">
      <Section title="Failing most, 24 hours">
        {data.most_failing.length === 0 ? (
          <p className="text-sm text-muted">Nothing failed.</p>
        ) : (
          <Table
            caption="Failing most"
            rows={data.most_failing}
            keyOf={({ organization, project }) => `${organization}/${project}`}
            columns={[
              { head: "Project", grow: true, cell: ({ organization, project }) => `${organization}/${project}` },
              { head: "Errors", end: true, cell: ({ errors }) => count(errors) },
              { head: "Crashes", end: true, cell: ({ crashes }) => count(crashes) },
              { head: "Deployments", end: true, wide: true, cell: ({ failed_deployments: failed }) => count(failed) },
            ]}
          />
        )}
      </Section>
      <Section title="Slowest, 24 hours">
        {data.slowest.length === 0 ? (
          <p className="text-sm text-muted">No requests.</p>
        ) : (
          <Table
            caption="Slowest"
            rows={data.slowest}
            keyOf={({ organization, project }) => `${organization}/${project}`}
            columns={[
              { head: "Project", grow: true, cell: ({ organization, project }) => `${organization}/${project}` },
              { head: "Requests", end: true, cell: ({ requests }) => count(requests) },
              { head: "Mean", end: true, cell: ({ mean_ms: mean }) => duration(mean) },
            ]}
          />
        )}
      </Section>
    </div>
  );
}
