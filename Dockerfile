# One image for the operator, the workers and the command line. The first argument names the program: operator, worker, or
# durable-timer followed by a verb.
#
#   docker build --tag durable-timer .
#
# Where there is no network, named contexts stand in for what it brings: `--build-context packages=DIR` for installed packages
# (DIR holds node_modules), `--build-context bundles=dist/bin` for what `npm run build` made. Commands are in exec form, so that
# base images without a shell do as well.

# The version that this repository is tested with; any Node of that line works.
ARG BASE_IMAGE=node:24.22.3-trixie-slim
ARG BUILD_IMAGE=node:24.22.3-trixie-slim

FROM ${BUILD_IMAGE} AS install
WORKDIR /install
COPY package.json package-lock.json .npmrc ./
RUN ["npm", "ci", "--include=dev", "--include=optional", "--ignore-scripts"]

FROM scratch AS packages
COPY --from=install /install/node_modules /node_modules

FROM ${BUILD_IMAGE} AS build
WORKDIR /build
COPY --from=packages /node_modules node_modules
COPY package.json tsconfig.json ./
COPY scripts scripts
COPY src src
RUN ["node", "scripts/build.ts", "--programs"]

FROM scratch AS bundles
COPY --from=build /build/dist/bin /

FROM ${BASE_IMAGE}
LABEL org.opencontainers.image.title="durable-timer" \
      org.opencontainers.image.description="Durable timers on NATS JetStream: operator, worker and command line" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY package.json LICENSE /opt/durable-timer/
COPY --from=bundles / /opt/durable-timer/dist/bin/
# Programs are found by their names in this folder. Nothing is ever written: the root may be mounted read-only.
WORKDIR /opt/durable-timer/dist/bin
ENV NODE_ENV=production
# A number, which is what runAsNonRoot can check. The charts run it as the same user.
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["node"]
CMD ["durable-timer", "--help"]
