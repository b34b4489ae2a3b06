# dpsynth without TensorFlow, for the generator marginals. The tables are mounted, and nothing else is read:
#   docker build -t dpsynth .
#   docker run --rm --network none --user "$(id -u)" -v "$PWD:/data" dpsynth run --data patients.csv ...
FROM python:3.11-slim
ENV PIP_NO_CACHE_DIR=1 MPLCONFIGDIR=/tmp/matplotlib
COPY requirements-light.txt /src/
RUN pip install -r /src/requirements-light.txt
COPY . /src
RUN pip install --no-deps /src && rm -r /src
WORKDIR /data
ENTRYPOINT ["dpsynth"]
CMD ["--help"]
