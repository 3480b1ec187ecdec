// Plots as SVG text, small enough to write by hand.

export type Bar = { readonly label: string; readonly value: number; readonly isOurs: boolean };

/** Horizontal bars with their values, in the order given. */
export function barPlot(title: string, bars: readonly Bar[]): string {
  const largest = Math.max(1, ...bars.map(({ value }) => value));
  const height = top + bars.length * rowHeight + 8;
  const rows = bars.map(({ label, value, isOurs }, index) => {
    const y = top + index * rowHeight;
    const length = Math.max(1, (value / largest) * barLengthMax);
    return `  <text x="${String(labelWidth - 8)}" y="${String(y + 14)}" text-anchor="end">${escaped(label)}</text>
  <rect x="${String(labelWidth)}" y="${String(y + 2)}" width="${length.toFixed(1)}" height="16" fill="${isOurs ? "#1f6feb" : "#8c959f"}"/>
  <text x="${(labelWidth + length + 6).toFixed(1)}" y="${String(y + 14)}">${value.toLocaleString("en")}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${String(width)}" height="${String(height)}" viewBox="0 0 ${String(width)} ${String(height)}" font-family="sans-serif" font-size="12">
  <rect width="100%" height="100%" fill="#ffffff"/>
  <text x="8" y="20" font-size="14" font-weight="bold">${escaped(title)}</text>
${rows.join("\n")}
</svg>
`;
}

const width = 900;
const labelWidth = 330;
const barLengthMax = 480;
const rowHeight = 22;
const top = 34;

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
