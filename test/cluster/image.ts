/**
 * Builds container images without a container engine's service and without a registry.
 *
 * Images are built with buildah in a store of their own below the cache, and leave it as archives
 * (uncompressed: compressing one takes longer than everything else together). A Dockerfile that takes its base as `ARG BASE_IMAGE` can be built on a machine without
 * a network: `buildNodeBaseImage` assembles one from the Node.js that this repository installs.
 */
import { copyFile, mkdir, mkdtemp, realpath, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { runCommand } from "./commands.ts";
import { clusterCacheDir, repositoryDir } from "./paths.ts";

export type ImageBuild = {
  readonly dockerfile: string;
  /** The folder that COPY sees; by default the Dockerfile's own. */
  readonly contextDir?: string;
  /** The full name: `localhost/durable-timer:dev`. */
  readonly tag: string;
  readonly buildArgs?: Readonly<Record<string, string>>;
  /** Folders that COPY --from sees under a name, in place of a stage of that name. */
  readonly contexts?: Readonly<Record<string, string>>;
};

/** Builds an image and returns the path of its archive, which replaces an earlier one. */
export async function buildImage(build: ImageBuild): Promise<string> {
  const archivePath = archivePathOf(build.tag);
  await buildIntoStore(build);
  await rm(archivePath, { force: true });
  await buildah(["push", build.tag, `docker-archive:${archivePath}:${build.tag}`]);
  // The store keeps whole copies of every layer: what has left it as an archive need not stay.
  await buildah(["rmi", build.tag]);
  return archivePath;
}

async function buildIntoStore(build: ImageBuild): Promise<void> {
  const buildArgs = Object.entries(build.buildArgs ?? {}).flatMap(([name, value]) => ["--build-arg", `${name}=${value}`]);
  const contexts = Object.entries(build.contexts ?? {}).flatMap(([name, dir]) => ["--build-context", `${name}=${dir}`]);
  await buildah([
    ...["bud", "--isolation=chroot", "--pull=never", "--tag", build.tag, ...buildArgs, ...contexts],
    ...["--file", build.dockerfile, build.contextDir ?? dirname(build.dockerfile)],
  ]);
}

/** An image with nothing but Node.js, its libraries and a user; has no shell. Returns its name. */
export async function buildNodeBaseImage(): Promise<string> {
  const nodePath = await realpath(join(repositoryDir, "node_modules", ".bin", "node"));
  const version = (await runCommand(nodePath, ["--version"])).trim().slice(1);
  const tag = `localhost/node:${version}`;
  if (await isStored(tag)) return tag;
  await inContext(async (contextDir) => {
    const files = new Map([["/usr/local/bin/node", nodePath]]);
    for (const path of await sharedLibraries(nodePath)) files.set(path, path);
    for (const [target, source] of files) await copyInto(join(contextDir, "root", target), source);
    await mkdir(join(contextDir, "root", "etc"), { recursive: true });
    await mkdir(join(contextDir, "root", "tmp"), { mode: 0o1777 });
    await writeFile(join(contextDir, "root", "etc", "passwd"), PASSWD);
    await writeFile(join(contextDir, "root", "etc", "group"), GROUP);
    await writeFile(join(contextDir, "Dockerfile"), NODE_DOCKERFILE);
    await buildIntoStore({ dockerfile: join(contextDir, "Dockerfile"), tag });
  });
  return tag;
}

/** An image with one static program and nothing else, built if that is newer. Returns the path of its archive. */
export async function buildProgramImage(tag: string, programPath: string): Promise<string> {
  const archivePath = archivePathOf(tag);
  if (await isNewer(archivePath, programPath)) return archivePath;
  return await inContext(async (contextDir) => {
    await copyInto(join(contextDir, "program"), programPath);
    await writeFile(join(contextDir, "Dockerfile"), 'FROM scratch\nCOPY program /program\nENTRYPOINT ["/program"]\n');
    return await buildImage({ dockerfile: join(contextDir, "Dockerfile"), tag });
  });
}

async function isStored(tag: string): Promise<boolean> {
  try {
    await buildah(["inspect", "--type=image", tag]);
    return true;
  } catch {
    return false;
  }
}

async function buildah(args: readonly string[]): Promise<string> {
  await mkdir(imagesDir, { recursive: true });
  const settingsPath = join(imagesDir, "containers.conf");
  // By default it locks, and so creates, a folder of the machine for networks that are not used here.
  await writeFile(settingsPath, `[network]\nnetwork_config_dir = "${join(imagesDir, "networks")}"\n`);
  return await runCommand("buildah", [...STORE, ...args], { env: { CONTAINERS_CONF: settingsPath } });
}

function archivePathOf(tag: string): string {
  return join(imagesDir, `${tag.replaceAll(/[^\w.-]+/g, "_")}.tar`);
}

async function isNewer(path: string, thanPath: string): Promise<boolean> {
  try {
    return (await stat(path)).mtimeMs >= (await stat(thanPath)).mtimeMs;
  } catch {
    return false;
  }
}

async function inContext<Result>(work: (contextDir: string) => Promise<Result>): Promise<Result> {
  const contextDir = await mkdtemp(join(tmpdir(), "image-"));
  try {
    return await work(contextDir);
  } finally {
    await rm(contextDir, { recursive: true, force: true });
  }
}

async function copyInto(target: string, source: string): Promise<void> {
  await mkdir(dirname(target), { recursive: true });
  await copyFile(source, target);
}

/** The libraries as the loader finds them, and the loader itself: lines that hold a path. */
async function sharedLibraries(programPath: string): Promise<readonly string[]> {
  const lines = (await runCommand("ldd", [programPath])).split("\n");
  return lines.flatMap((line) => /(?:=> |^\s*)(\/\S+)/.exec(line)?.[1] ?? []);
}

const imagesDir = join(clusterCacheDir, "images");

const STORE: readonly string[] = [
  ...["--root", join(imagesDir, "store")],
  ...["--runroot", join(imagesDir, "run")],
  // Plain copies: an overlay on top of whatever holds this folder may be refused.
  ...["--storage-driver", "vfs"],
];

const PASSWD = "root:x:0:0:root:/:/none\nnode:x:1000:1000:node:/:/none\nnonroot:x:65532:65532:nonroot:/:/none\n";
const GROUP = "root:x:0:\nnode:x:1000:\nnonroot:x:65532:\n";
const NODE_DOCKERFILE = 'FROM scratch\nCOPY root/ /\nENV PATH=/usr/local/bin\nCMD ["node"]\n';
