import { count, plural } from "../../data/format.ts";
import type { OverviewProject } from "../../frame/stand.ts";

const width = 96;
const height = 20;
const gap = 0.8;

/** Shows the requests of the last hour as a small chart, errors in red, with their number for readers who can't see it. */
export function Sparkline({ project }: { readonly project: OverviewProject }) {
  const { requests, errors, parts } = project.last_hour;
  if (requests === 0) return <span className="text-faint">no requests</span>;
  const most = Math.max(...parts.map((part) => part.requests));
  const step = width / parts.length;
  const label = `${plural(requests, "request")}, ${plural(errors, "error")} in the last hour`;
  const bar = (value: number, index: number, fill: string) => (
    <rect
      key={`${fill} ${index}`}
      x={index * step}
      width={step - gap}
      y={height - (value / most) * height}
      height={(value / most) * height}
      className={fill}
    />
  );
  return (
    <span className="flex items-center gap-2.5" title={label}>
      <svg width={width} height={height} role="img" aria-label={label} className="shrink-0">
        <line x1="0" x2={width} y1={height - 0.5} y2={height - 0.5} className="stroke-line" />
        {parts.map((part, index) => bar(part.requests, index, "fill-accent"))}
        {parts.map((part, index) => bar(part.errors, index, "fill-bad"))}
      </svg>
      <span className="w-12 text-right text-muted">{count(requests)}</span>
    </span>
  );
}
