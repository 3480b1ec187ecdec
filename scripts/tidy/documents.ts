// Documents that repeat what code says, compared with the code.

import { posix } from "node:path";
import { roomsTable } from "../rooms.ts";
import type { Finding, Repository } from "./repository.ts";

/** The rooms table of ARCHITECTURE.md is that of scripts/rooms.ts. */
export function checkRoomsTable({ has, read }: Repository): readonly Finding[] {
  const path = "ARCHITECTURE.md";
  if (!has(path)) return [];
  const lines = read(path).split("\n");
  const start = lines.findIndex((line) => /^\|\s*room\s*\|/.test(line));
  const end = lines.findIndex((line, index) => index > start && !line.startsWith("|"));
  const shown = start < 0 ? [] : lines.slice(start, end < 0 ? undefined : end);
  const isSame = tableCells(shown.join("\n")) === tableCells(roomsTable());
  return isSame ? [] : [{ path, text: `its rooms table must be\n${roomsTable()}\n` }];
}

/** Every npm script is explained in CONTRIBUTING.md, and every one explained there exists. */
export function checkScriptTable({ has, read }: Repository): readonly Finding[] {
  const path = "CONTRIBUTING.md";
  if (!has(path) || !has("package.json")) return [];
  const { scripts = {} } = JSON.parse(read("package.json")) as { readonly scripts?: Readonly<Record<string, string>> };
  const explained = [...read(path).matchAll(/^\|\s*`npm (?:run )?([a-z:-]+)/gm)].map(([, name]) => String(name));
  return [
    ...Object.keys(scripts).filter((name) => !explained.includes(name)).map((name) => ({ path, text: `explain the script ${name}` })),
    ...explained.filter((name) => !(name in scripts)).map((name) => ({ path, text: `the script ${name} does not exist` })),
  ];
}

/** Decision records are numbered 0001, 0002 … without a gap or a double, and carry their number in the title. */
export function checkDecisionRecords({ paths, read }: Repository): readonly Finding[] {
  const records = paths.filter((path) => /^docs\/adr\/(?!README\.md$).*\.md$/.test(path));
  return records.flatMap((path, index) => {
    const number = String(index + 1).padStart(4, "0");
    const isNamed = new RegExp(`^docs/adr/${number}-[a-z0-9]+(?:-[a-z0-9]+)*\\.md$`).test(path);
    const isTitled = new RegExp(`^# .*\\b0*${index + 1}\\b`).test(read(path));
    return [
      ...(isNamed ? [] : [{ path, text: `should be ${number}-<title-in-kebab-case>.md` }]),
      ...(isNamed && !isTitled ? [{ path, text: `its first line should be a title with the number ${index + 1}` }] : []),
    ];
  });
}

/** Relative links lead to files that exist. */
export function checkLinks({ paths, has, read }: Repository): readonly Finding[] {
  const isThere = (target: string): boolean => has(target) || paths.some((path) => path.startsWith(`${target.replace(/\/$/, "")}/`));
  return paths.filter((path) => path.endsWith(".md")).flatMap((path) => {
    const links = [...read(path).matchAll(/\]\((?![a-z]+:|#)([^)#\s]+)[^)]*\)/g)].map(([, link]) => String(link));
    return links.filter((link) => !isThere(posix.join(posix.dirname(path), link))).map((link) => ({ path, text: `${link} does not exist` }));
  });
}

function tableCells(table: string): string {
  const rows = table.split("\n").filter((line) => !/^\|[\s|:-]+\|$/.test(line));
  return rows.map((row) => row.split("|").map((cell) => cell.trim().replaceAll("`", "")).join("|")).join("\n");
}
