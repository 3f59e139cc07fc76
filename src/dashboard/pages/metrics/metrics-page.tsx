import { getRouteApi } from "@tanstack/react-router";
import { ChartSpline, ZoomOut } from "lucide-react";
import { lazy, Suspense, useMemo } from "react";
import { metricsRanges } from "../../../contract/metrics.ts";
import { useCall, useSlug } from "../../data/api.ts";
import { loadPart } from "../../data/load-part.ts";
import { bytes, count, duration } from "../../data/format.ts";
import type { Drawn, Zoom } from "../../ui/plot.ts";
import { Button } from "../../ui/button.tsx";
import { Choice } from "../../ui/choice.tsx";
import { Page, Empty, Skeleton, View } from "../../ui/page.tsx";
import { Fact } from "../../ui/text.tsx";
import { HowToDeploy } from "../projects/how-to-deploy.tsx";
import { axisOf, chartsOf, milliseconds, type Metrics } from "./charts-of.ts";

// Loads at the same time as the numbers.
const chartPart = loadPart(() => import("../../ui/chart.tsx"));
const Chart = lazy(async () => ({ default: (await chartPart).Chart }));

type Range = (typeof metricsRanges)[number];

export interface MetricsSearch extends Partial<Zoom> {
  readonly range?: Range;
}

const route = getRouteApi("/projects/$slug/metrics");

export function MetricsPage() {
  const slug = useSlug();
  const { range = "1h", from, to } = route.useSearch();
  const navigate = route.useNavigate();
  const metrics = useCall("metrics.get", { params: { slug }, query: { range } }, { pollMs: 20_000, keep: true });
  const zoom = useMemo(
    () => (typeof from === "number" && typeof to === "number" ? { from, to } : undefined),
    [from, to],
  );
  // Every chart reports the shared zoom, so repeats are ignored.
  const onZoom = (next: Zoom | undefined) => {
    if (next?.from === from && next?.to === to) return;
    void navigate({ search: { range, ...next }, replace: true, resetScroll: false });
  };
  const choice = (
    <Choice
      label="Range"
      options={metricsRanges}
      value={range}
      onChange={(next) => void navigate({ search: { range: next }, replace: true })}
    />
  );
  return (
    <Page wide title="Metrics" actions={choice}>
      <View of={metrics}>{(data) => <Charts data={data} zoom={zoom} onZoom={onZoom} />}</View>
    </Page>
  );
}

function Charts({ data, ...zooming }: { readonly data: Metrics } & Pick<Drawn, "zoom" | "onZoom">) {
  const slug = useSlug();
  const [axis, charts] = useMemo(() => [axisOf(data), chartsOf(data)], [data]);
  const { total } = data;
  if (total.requests === 0 && data.deployments.length === 0 && data.replicas.length === 0)
    return (
      <Empty icon={<ChartSpline size={24} />} title="Nothing was measured yet" action={<HowToDeploy slug={slug} />}>
        Requests, latency, processors and memory are drawn here as soon as a deployment serves.
      </Empty>
    );
  return (
    <>
      <dl className="grid grid-cols-2 gap-4 rounded-md border border-line p-4 sm:grid-cols-5">
        <Fact label="Requests">{count(total.requests)}</Fact>
        <Fact label="Errors">
          <span className={total.errors > 0 ? "text-bad" : ""}>
            {count(total.errors)} (
            {(total.error_rate * 100).toFixed(total.error_rate > 0 && total.error_rate < 0.1 ? 2 : 0)} %)
          </span>
        </Fact>
        <Fact label="Latency p50 / p95">
          {milliseconds(total.latency_ms.p50)} / {milliseconds(total.latency_ms.p95)}
        </Fact>
        <Fact label="Traffic out">{bytes(total.bytes_out)}</Fact>
        <Fact label="First page">
          {data.page === null ? (
            "not measured yet"
          ) : data.page.ok ? (
            milliseconds(data.page.total_ms)
          ) : (
            <span className="text-bad">{data.page.failure ?? "failed"}</span>
          )}
        </Fact>
      </dl>
      <div className="flex min-h-8 flex-wrap items-center justify-between gap-x-4 gap-y-1 text-xs text-faint">
        <p>
          A point is {duration(data.bucket_seconds * 1000)}.{" "}
          <span className="max-sm:hidden pointer-coarse:hidden">
            Drag in a chart to zoom, double-click to go back; with the keyboard, arrows, + and −, Escape.
          </span>
        </p>
        {zooming.zoom !== undefined && (
          <Button icon={<ZoomOut size={14} />} onClick={() => zooming.onZoom(undefined)}>
            Show all
          </Button>
        )}
      </div>
      <Suspense fallback={<Skeleton rows={4} height={208} />}>
        {charts.map((chart) => (
          <Chart key={chart.title} {...chart} {...zooming} {...axis} />
        ))}
      </Suspense>
    </>
  );
}
