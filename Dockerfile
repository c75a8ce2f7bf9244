# docker build -t postflight .
# docker run --rm -v "$PWD:$PWD" -w "$PWD" postflight trace dumps/
#
# To read live processes of the host (stacks, profile --pid), add
# --pid=host --cap-add=SYS_PTRACE.
FROM debian:12 AS build
RUN apt-get update && apt-get install -y --no-install-recommends make
COPY . /src
RUN make -C /src install PREFIX=/usr DESTDIR=/out

FROM debian:12-slim
COPY --from=build /out/ /
ENTRYPOINT ["postflight"]
