export interface Marker {
  /** Seconds since 1970. */
  readonly at: number;
  readonly number: number;
}

/** Deployments that are too close in a chart to be labelled apart, oldest first. Places are in pixels from the left. */
export interface Cluster {
  /** The place of the first deployment. */
  readonly from: number;
  /** The place of the last deployment. */
  readonly to: number;
  /** Where the space for the label begins: at the first deployment, or further left where it would leave the chart. */
  readonly label: number;
  readonly markers: readonly Marker[];
}

interface Widths {
  readonly chart: number;
  /** The space for a label, the same for all. */
  readonly label: number;
}

/** Groups the markers of a chart so that the labels of the groups never overlap. Markers outside the chart are left out. */
export function clusterMarkers(
  markers: readonly Marker[],
  placeOf: (marker: Marker) => number,
  widths: Widths,
): readonly Cluster[] {
  const clusters: Cluster[] = [];
  for (const marker of markers.toSorted((a, b) => a.at - b.at)) {
    const place = placeOf(marker);
    if (place < 0 || place > widths.chart) continue;
    const label = Math.min(place, Math.max(0, widths.chart - widths.label));
    const last = clusters.at(-1);
    if (last === undefined || label - last.label >= widths.label)
      clusters.push({ from: place, to: place, label, markers: [marker] });
    else clusters[clusters.length - 1] = { ...last, to: place, markers: [...last.markers, marker] };
  }
  return clusters;
}

/** `#7`, `#3–7`; `5 deploys` where others lie between them. */
export function clusterLabel({ markers }: Cluster): string {
  const numbers = markers.map(({ number }) => number);
  const [least, most] = [Math.min(...numbers), Math.max(...numbers)];
  if (numbers.length === 1) return `#${least}`;
  return most - least === numbers.length - 1 ? `#${least}–${most}` : `${numbers.length} deploys`;
}
