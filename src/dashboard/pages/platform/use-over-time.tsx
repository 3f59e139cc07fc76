import { lazy, Suspense, useMemo, useState } from "react";
import type { Answer } from "../../../contract/client.ts";
import { metricsRanges } from "../../../contract/metrics.ts";
import { useCall } from "../../data/api.ts";
import { bytes, count } from "../../data/format.ts";
import { loadPart } from "../../data/load-part.ts";
import { Choice } from "../../ui/choice.tsx";
import { Section, Skeleton, View } from "../../ui/page.tsx";
import type { Drawn, Zoom } from "../../ui/plot.ts";

// Loads at the same time as the numbers.
const chartPart = loadPart(() => import("../../ui/chart.tsx"));
const Chart = lazy(async () => ({ default: (await chartPart).Chart }));

type Metrics = Answer<"platform.metrics">;

const pollMs = 20_000;

/** Charts of what the machines and the edges did. */
export function UseOverTime() {
  const [range, setRange] = useState<Metrics["range"]>("1h");
  const [zoom, setZoom] = useState<Zoom>();
  const metrics = useCall("platform.metrics", { query: { range } }, { pollMs, keep: true });
  const choose = (next: Metrics["range"]) => {
    setRange(next);
    setZoom(undefined);
  };
  return (
    <Section
      title="Use over time"
      actions={<Choice label="Range" options={metricsRanges} value={range} onChange={choose} />}
    >
      {/* As high as the charts, one below the other on narrow screens, so that what follows stays where it is. */}
      <div className="min-h-[988px] lg:min-h-[460px]">
        <View of={metrics}>{(data) => <Charts data={data} zoom={zoom} onZoom={setZoom} />}</View>
      </div>
    </Section>
  );
}

function Charts({ data, ...zooming }: { readonly data: Metrics } & Pick<Drawn, "zoom" | "onZoom">) {
  const [times, charts] = useMemo(() => [data.times.map((at) => Date.parse(at) / 1000), chartsOf(data)], [data]);
  return (
    <Suspense fallback={<Skeleton />}>
      <div className="grid gap-5 lg:grid-cols-2">
        {charts.map((chart) => (
          <Chart key={chart.title} {...chart} {...zooming} times={times} markers={[]} />
        ))}
      </div>
    </Suspense>
  );
}

const colours = ["accent", "busy", "warn", "faint"] as const;

function chartsOf({ machines, edges }: Metrics) {
  // With one machine, its name says nothing that the title does not.
  const labelOf = (name: string, of: string) => (machines.length === 1 ? `in use, of ${of}` : `${name}, of ${of}`);
  const lines = (of: (machine: Metrics["machines"][number]) => { values: (number | null)[]; of: string }) =>
    machines.map((machine, index) => {
      const { values, of: all } = of(machine);
      const colour = colours[index % colours.length] ?? "accent";
      return { label: labelOf(machine.name, all), colour, values, ...(machines.length === 1 ? { fill: true } : {}) };
    });
  return [
    {
      title: "Processors",
      least: 0.1,
      format: (value: number) => value.toFixed(2),
      series: lines(({ cpus, used }) => ({ values: used.cpus, of: String(cpus) })),
    },
    {
      title: "Memory",
      format: bytes,
      isBinary: true,
      series: lines(({ memory_bytes: all, used }) => ({ values: used.memory_bytes, of: bytes(all) })),
    },
    {
      title: "Disk",
      format: bytes,
      isBinary: true,
      series: lines(({ disk_bytes: all, used }) => ({ values: used.disk_bytes, of: bytes(all) })),
    },
    {
      title: "Requests at the edges",
      least: 4,
      format: count,
      series: [
        { label: "all", colour: "accent" as const, fill: true, values: edges.requests },
        { label: "5xx", colour: "bad" as const, values: edges.errors },
      ],
    },
  ];
}
