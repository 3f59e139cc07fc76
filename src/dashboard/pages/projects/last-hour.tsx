import { Link } from "@tanstack/react-router";
import { lazy, Suspense, useMemo } from "react";
import { useCall } from "../../data/api.ts";
import { loadPart } from "../../data/load-part.ts";
import { Section, Skeleton } from "../../ui/page.tsx";
import { axisOf, chartsOf, type Metrics } from "../metrics/charts-of.ts";

// Loads at the same time as the numbers.
const chartPart = loadPart(() => import("../../ui/chart.tsx"));
const SmallChart = lazy(async () => ({ default: (await chartPart).SmallChart }));

const shown: Readonly<Record<string, string>> = {
  Requests: "Requests; failed ones in red",
  Latency: "Latency: p50, p95 and p99",
  Memory: "Memory of all replicas; its limit in red",
};

export function LastHour({ slug }: { readonly slug: string }) {
  const { data } = useCall("metrics.get", { params: { slug }, query: { range: "1h" } }, { pollMs: 20_000, keep: true });
  return (
    <Section
      title="Last hour"
      actions={
        <Link
          to="/projects/$slug/metrics"
          params={{ slug }}
          className="text-sm text-accent underline underline-offset-2"
        >
          All metrics
        </Link>
      }
    >
      {/* As high as the charts, one below the other on narrow screens, so that what follows stays where it is. */}
      <div className="min-h-[476px] lg:min-h-[148px]">{data === undefined ? waiting : <Charts data={data} />}</div>
    </Section>
  );
}

const waiting = <Skeleton rows={1} height={146} />;

function Charts({ data }: { readonly data: Metrics }) {
  const [axis, charts] = useMemo(() => [axisOf(data), chartsOf(data)], [data]);
  return (
    <Suspense fallback={waiting}>
      <div className="grid gap-x-6 gap-y-4 lg:grid-cols-3">
        {charts.flatMap(({ title, ...chart }) => {
          const text = shown[title];
          const isZoomed = { zoom: undefined, onZoom: () => {} };
          return text === undefined ? [] : [<SmallChart key={title} title={text} {...chart} {...axis} {...isZoomed} />];
        })}
      </div>
    </Suspense>
  );
}
