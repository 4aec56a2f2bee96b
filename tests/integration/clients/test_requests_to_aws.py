"""All requests of sbench to AWS conform to botocore's models of its services."""

import ast
import hashlib
import itertools
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, unquote
from xml.etree.ElementTree import Element

import botocore.session
import pytest
from botocore import xform_name
from botocore.client import BaseClient
from botocore.model import ListShape, OperationModel, ServiceModel, Shape, StructureShape
from botocore.serialize import create_serializer
from botocore.validate import ParamValidator

import serverless_bench
from serverless_bench.base.errors import OperationError
from serverless_bench.clients.s3_http import METHODS, OpenUpload, local_name, parse_xml
from serverless_bench.driver.bucket import ENCRYPTION
from serverless_bench.features.aws_lambda.client import LambdaClient
from serverless_bench.features.awscrt.client import AwsCrtClient
from serverless_bench.features.doctor import examination
from serverless_bench.features.testing.client_parts import PatientMeter
from serverless_bench.features.versions.listing import ObjectVersion, VersionsClient
from serverless_bench.job.target import Target, Transfer
from serverless_bench.worker.in_memory import MemorySink, MemorySource
from tests.house.measures import sources
from tests.stores.faulty import Exchange, FaultServer

PACKAGE: Final = Path(serverless_bench.__file__).parent
MODELS: Final = botocore.session.Session()
# A copy: clients of this process change the paths in the model that they share.
S3: Final = ServiceModel(
    deepcopy(MODELS.get_component("data_loader").load_service_model("s3", "service-2")), "s3"
)
HTTP: Final = {
    *("host", "authorization", "user-agent", "content-length", "accept", "connection"),
    *("x-amz-date", "x-amz-content-sha256", "x-amz-security-token", "x-amz-s3session-token"),
    *("amz-sdk-invocation-id", "amz-sdk-request"),
}
"""Headers of HTTP, and of SigV4, which no operation has as its own."""
SESSION: Final = b"""<CreateSessionResult><Credentials><AccessKeyId>a</AccessKeyId>
<SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>
<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></CreateSessionResult>"""
KEY: Final = "runs/a b+c~&ü"
VERSION: Final = ObjectVersion(KEY, "v+1")
UPLOAD: Final = OpenUpload(KEY, "u/1+")
SOURCE: Final = MemorySource(b"data")

OF_ALL: Final[dict[str, Callable[..., object]]] = {
    "put": lambda client, exchange: client.put(KEY, SOURCE, exchange),
    "get": lambda client, exchange: client.get(KEY, MemorySink(), exchange),
    "get a range": lambda client, exchange: client.get(
        KEY, MemorySink(), exchange, offset=1, length=2
    ),
    "head": lambda client, exchange: client.head(KEY, exchange),
    "list": lambda client, exchange: client.list_keys("runs/", "", exchange),
    "list on": lambda client, exchange: client.list_keys("runs/", KEY, exchange),
    "delete": lambda client, exchange: client.delete(KEY, exchange),
    "delete many": lambda client, exchange: client.delete_many([KEY, "runs/<b>"], exchange),
    "copy": lambda client, exchange: client.copy(KEY, "runs/c", exchange),
    "create": lambda client, exchange: client.create_multipart(KEY, exchange),
    "part": lambda client, exchange: client.upload_part(KEY, "u/1+", 3, SOURCE, exchange),
    "complete": lambda client, exchange: client.complete_multipart(
        KEY, "u/1+", ['"e"', "f"], exchange
    ),
    "abort": lambda client, exchange: client.abort_multipart(KEY, "u/1+", exchange),
}
OURS: Final[dict[str, Callable[..., object]]] = {
    "claim": lambda client, exchange: client.put(KEY, SOURCE, exchange, if_absent=True),
    "put if absent": lambda client, exchange: client.put_if(KEY, SOURCE, exchange, etag=None),
    "put if it is": lambda client, exchange: client.put_if(KEY, SOURCE, exchange, etag='"e"'),
    "get tagged": lambda client, exchange: client.get_tagged(KEY, MemorySink(), exchange),
    "begin": lambda client, exchange: client.get_head(KEY, 9, exchange),
    "begin of a version": lambda client, exchange: client.get_head(
        KEY, 0, exchange, query=VERSION.query
    ),
    "delete if it is": lambda client, exchange: client.delete(KEY, exchange, etag='"e"'),
    "delete a version": lambda client, exchange: client.delete_version(VERSION, exchange),
    "encryption": lambda client, exchange: client.read_setting(ENCRYPTION, exchange),
    "sizes": lambda client, exchange: client.list_sizes("runs/", KEY, exchange),
    "versions": lambda client, exchange: client.list_versions("runs/", None, exchange),
    "versions on": lambda client, exchange: client.list_versions("runs/", VERSION, exchange),
    "uploads": lambda client, exchange: client.list_uploads("runs/", None, exchange),
    "uploads on": lambda client, exchange: client.list_uploads("runs/", UPLOAD, exchange),
    "bucket": lambda client, exchange: client.head_bucket(exchange),
    "bucket of": lambda client, exchange: client.head_bucket(exchange, owner="123456789012"),
    "make": lambda client, exchange: client.create_bucket(exchange),
    **{
        setting.operation: partial(VersionsClient.read_setting, setting=setting)
        for _, setting, _ in examination._QUESTIONS
    },
}


@dataclass(frozen=True, slots=True)
class Request:
    """A request as a server sees it."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


def requests_of(
    client_class: Callable[..., Any], bucket: str, call: Callable[..., object]
) -> list[Request]:
    """Return the requests of a client for a call."""
    seen: list[Request] = []

    def answer(exchange: Exchange) -> bool:
        path, _, query = exchange.path.partition("?")
        body = exchange.body_start
        while len(body) < int(exchange.headers.get("content-length", 0)):
            body += exchange.connection.recv(1 << 16)
        parameters = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
        seen.append(Request(exchange.method, path, parameters, exchange.headers, body))
        exchange.say(200, SESSION if "session" in parameters else b"")
        return True

    with FaultServer(itertools.repeat(answer)) as server:
        target = Target(bucket=bucket, endpoint_url=server.endpoint_url)
        # Most calls raise an error for an empty answer, but the request has been recorded.
        with closing(client_class(target, Transfer())) as client, suppress(OperationError):
            call(client, exchange=PatientMeter())
    return seen


def check(request: Request) -> str:
    """Return the operation of a request, after comparing the request with botocore's."""
    operation, parameters = understood(request)
    shape = operation.input_shape
    assert shape is not None
    report = ParamValidator().validate(parameters, shape)
    assert not report.has_errors(), report.generate_report()
    made = create_serializer("rest-xml").serialize_to_request(parameters, operation)
    path, _, fixed = made["url_path"].partition("?")
    query = dict(parse_qsl(fixed, keep_blank_values=True)) | made["query_string"]
    # A bucket's path may end with a slash.
    assert (made["method"], path) == (request.method, request.path.removesuffix("/"))
    assert {name: str(value) for name, value in query.items()} == request.query
    headers = {name.lower(): value for name, value in made["headers"].items()}
    sent = {name: value for name, value in request.headers.items() if name not in HTTP}
    assert {name: sent[name] for name in headers if name != "content-type"} == {
        name: value for name, value in headers.items() if name != "content-type"
    }
    if isinstance(payload_of(shape), StructureShape) and request.body:
        assert tree(parsed(request.body)) == tree(parsed(made["body"]))
    if operation.http_checksum.get("requestChecksumRequired"):
        digest = hashlib.md5(request.body, usedforsecurity=False).digest()
        assert request.headers["content-md5"] == b64encode(digest).decode()
    return operation.name


def understood(request: Request) -> tuple[OperationModel, dict[str, Any]]:
    """Return the operation that a request means, and its parameters."""
    candidates = []
    for name in S3.operation_names:
        operation = S3.operation_model(name)
        parameters = None if operation.deprecated else read_parameters(operation, request)
        if parameters is not None:
            candidates.append((operation, parameters))
    assert candidates, request
    # A copy would also match PutObject without its source; the most specific match is correct.
    return max(candidates, key=lambda candidate: len(candidate[1]))


def read_parameters(operation: OperationModel, request: Request) -> dict[str, Any] | None:
    """Return the parameters in a request; None if it does not match this operation."""
    template, _, fixed = operation.http["requestUri"].partition("?")
    fixed_query = dict(parse_qsl(fixed, keep_blank_values=True))
    bucket, _, key = request.path.removeprefix("/").partition("/")
    is_for_it = (operation.http["method"], template) == (
        request.method,
        template_of(key),
    ) and fixed_query.items() <= request.query.items()
    shape = operation.input_shape
    if not is_for_it or shape is None:
        return None
    left = {
        "querystring": {k: v for k, v in request.query.items() if k not in fixed_query},
        "header": {k: v for k, v in request.headers.items() if k not in HTTP},
    }
    if operation.http_checksum.get("requestChecksumRequired"):
        left["header"].pop("content-md5", None)
    parameters: dict[str, Any] = {"Bucket": bucket, **({"Key": unquote(key)} if key else {})}
    for member, meant in shape.members.items():
        where, name = meant.serialization.get("location", ""), meant.serialization.get("name", "")
        values = left.get(where, {})
        text = values.pop(name if where == "querystring" else name.lower(), None)
        if text is not None:
            parameters[member] = read_scalar(meant, text)
    is_whole = parameters.keys() >= {*shape.required_members} - {shape.serialization.get("payload")}
    if any(left.values()) or not is_whole:
        return None
    payload = payload_of(shape)
    if payload is None or not request.body:
        return None if request.body else parameters
    is_document = isinstance(payload, StructureShape)
    body = read_xml(payload, parsed(request.body)) if is_document else request.body
    return {**parameters, shape.serialization["payload"]: body}


def template_of(key: str) -> str:
    """Return the path of operations on an object, or on a bucket if there is no key."""
    return "/{Bucket}/{Key+}" if key else "/{Bucket}"


def payload_of(shape: StructureShape) -> Shape | None:
    """Return the kind of a request's body."""
    name = shape.serialization.get("payload")
    return None if name is None else shape.members[name]


def read_scalar(shape: Shape, text: str) -> object:
    """Return the value of a text."""
    assert text in getattr(shape, "enum", ()) or not getattr(shape, "enum", ()), text
    if shape.type_name in {"integer", "long"}:
        return int(text)
    return text == "true" if shape.type_name == "boolean" else text


def read_xml(shape: Shape, element: Element) -> object:
    """Return the value of an XML element."""
    if not isinstance(shape, StructureShape):
        return read_scalar(shape, element.text or "")
    values: dict[str, Any] = {}
    members = {m.serialization.get("name", name): (name, m) for name, m in shape.members.items()}
    for child in element:
        name, member = members[local_name(child)]
        if isinstance(member, ListShape):
            assert member.serialization.get("flattened")
            values.setdefault(name, []).append(read_xml(member.member, child))
        else:
            values[name] = read_xml(member, child)
    return values


def parsed(text: bytes) -> Element:
    """Return a document."""
    root = parse_xml(text)
    assert root is not None
    return root


def tree(element: Element) -> object:
    """Return a document without its namespaces, and the order of different elements."""
    children = [tree(child) for child in element]
    return local_name(element), (element.text or "").strip(), sorted(children, key=repr)


def test_requests_that_are_made_and_signed_here_are_those_of_the_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    operations = set()
    for client_class, calls in ((VersionsClient, {**OF_ALL, **OURS}), (AwsCrtClient, OF_ALL)):
        for name, call in calls.items():
            made = requests_of(client_class, "bucket", call)
            assert made, name
            operations |= {check(request) for request in made}
    directory = requests_of(VersionsClient, "bucket--use1-az4--x-s3", OF_ALL["put"])
    sent = [check(request) for request in directory]
    assert sent == ["CreateSession", "PutObject"]
    # The thin client signs no request that this test did not check.
    assert operations ^ METHODS.keys() == {"CreateSession"}


def test_requests_outside_the_model_are_found() -> None:
    """The check finds a parameter, a header and an element that S3 has not."""
    query = {"list-type": "2", "prefix": "p"}
    listing = Request("GET", "/bucket", query, {}, b"")
    assert check(listing) == "ListObjectsV2"
    with pytest.raises(AssertionError):
        check(Request("GET", "/bucket", {**query, "start-behind": "a"}, {}, b""))
    with pytest.raises(AssertionError):
        check(Request("GET", "/bucket/key", {}, {"if-matches": "e"}, b""))
    with pytest.raises((AssertionError, KeyError)):
        check(Request("POST", "/bucket", {"delete": ""}, {}, b"<Delete><Item/></Delete>"))


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a botocore client in the package."""

    where: str
    method: str
    keywords: frozenset[str]
    is_whole: bool
    """Whether no further keywords are added at run time."""


CLIENTS: Final = {"client", "api", "lambda_client", "_client", "s3"}
"""Names of variables that hold clients of botocore."""
USES: Final = re.compile(
    r"^ *(from|import) boto|\bopen_s3\(|aws\.client import [^)]*\bopen_client\b",
    re.MULTILINE,
)
OPENERS: Final = {"open_client", "create_client", "client"}
NOT_OPERATIONS: Final = {*dir(BaseClient), *dir(LambdaClient), "api", "meta"} - {"invoke"}


def trees() -> Iterator[tuple[str, ast.Module]]:
    """Yield the modules that use botocore, or a client of it that another has opened."""
    for path in sources(PACKAGE):
        text = path.read_text()
        if USES.search(text):
            yield path.relative_to(PACKAGE).as_posix(), ast.parse(text)


def services(module: ast.Module) -> Iterator[str]:
    """Yield the services that a module opens clients for."""
    for node in ast.walk(module):
        match node:
            case ast.Call(
                func=ast.Name(id=name) | ast.Attribute(attr=name),
                args=[ast.Constant(value=str(service)), *_],
            ) if name in OPENERS:
                yield service
            case ast.Call(func=ast.Name(id="partial"), args=[ast.Name(id=name), first, *_]):
                if name in OPENERS and isinstance(first, ast.Constant):
                    yield str(first.value)
            case _:
                pass


def calls(where: str, module: ast.Module) -> Iterator[Call]:
    """Yield the calls of clients in a module, of which some are only named."""
    whole = {id(node.func): node for node in ast.walk(module) if isinstance(node, ast.Call)}
    for node in ast.walk(module):
        match node:
            case ast.Attribute(value=ast.Name(id=name) | ast.Attribute(attr=name), attr=method):
                call = whole.get(id(node))
                if (
                    name not in CLIENTS
                    or method in NOT_OPERATIONS
                    or method.startswith("_")
                    or (call and call.args)
                ):
                    continue
                keywords = call.keywords if call else []
                given = frozenset(one.arg for one in keywords if one.arg)
                yield Call(where, method, given, bool(call) and len(given) == len(keywords))
            case ast.Call(
                func=ast.Attribute(
                    value=ast.Call(
                        func=ast.Attribute(attr="get_paginator"),
                        args=[ast.Constant(value=str(operation))],
                    ),
                    attr="paginate",
                ),
                keywords=keywords,
            ):
                given = frozenset(one.arg for one in keywords if one.arg)
                yield Call(where, operation, given, len(given) == len(keywords))
            case _:
                pass


def invocations(module: ast.Module) -> Iterator[dict[str, str | None]]:
    """Yield the parameters of calls of Invoke in a module, with the constant values."""
    for node in ast.walk(module):
        if isinstance(node, ast.Dict):
            names = [getattr(key, "value", "") for key in node.keys]
            if "FunctionName" in names:
                values = [getattr(value, "value", None) for value in node.values]
                texts = [value if isinstance(value, str) else None for value in values]
                yield dict(zip(names, texts, strict=True))


def test_calls_of_botocore_are_those_of_its_models() -> None:
    modules = dict(trees())
    opened = {service for module in modules.values() for service in services(module)}
    assert opened >= {"cloudformation", "lambda", "s3", "service-quotas", "sts"}
    models: list[ServiceModel] = [MODELS.get_service_model(service) for service in opened]
    by_method = {
        xform_name(name): model.operation_model(name)
        for model in models
        for name in model.operation_names
    }
    invoke = by_method["invoke"].input_shape
    assert invoke is not None
    made = [call for where, module in modules.items() for call in calls(where, module)]
    assert {call.method for call in made} >= {
        *("describe_stacks", "get_account_settings", "get_caller_identity", "head_bucket"),
        *("get_function_configuration", "invoke", "list_service_quotas", "put_object"),
    }
    for module in modules.values():
        for parameters in invocations(module):
            assert parameters.keys() <= invoke.members.keys()
            for name, value in parameters.items():
                if value is not None:
                    read_scalar(invoke.members[name], value)
    for call in made:
        shape = by_method[call.method].input_shape
        members = set(shape.members) if shape else set()
        assert call.keywords <= members, call
        if call.is_whole and shape:
            assert set(shape.required_members) <= call.keywords, call
