"""What counts as a password or a key in a command, a setting or a message, and what does not."""

import pytest
import yaml

from scalerl.credentials import command_without_secrets, values_without_secrets, without_secrets


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://ada:pa55@127.0.0.1:9/x", "http://***@127.0.0.1:9/x"),
        ("postgresql+psycopg2://ada:pa55@db:5432/mlflow", "postgresql+psycopg2://***@db:5432/mlflow"),
        ("redis://:pa55@host", "redis://***@host"),
        ("https://ghp_token@host/repository", "https://***@host/repository"),
        ("http://ada:p@55@host/x", "http://***@host/x"),
        ("http://ada:p/55?#@host/x", "http://***@host/x"),
        (
            "no answer from http://ada:pa55@host, nor from ftp://b:c@other",
            "no answer from http://***@host, nor from ftp://***@other",
        ),
        ("export WANDB_API_KEY=pa55; python train.py", "export WANDB_API_KEY=***; python train.py"),
        ("--sbatch=export=ALL,HF_TOKEN=pa55", "--sbatch=export=ALL,HF_TOKEN=***"),
        ("train.py --password pa55 --lr 1", "train.py --password *** --lr 1"),
        ("https://host/api?token=pa55&page=2", "https://host/api?token=***&page=2"),
        ("db.password: pa55", "db.password: '***'"),
        ('{"api_key": "pa55"}', '{"api_key": "***"}'),
        ('{"api_key":"pa55"}', '{"api_key":"***"}'),
        (r'"{\"api_key\": \"pa 55\"}"', r'"{\"api_key\": \"***\"}"'),
        ("train.py --password 'it'\"'\"'s' --lr 1", "train.py --password '***' --lr 1"),
        ("['train.py', '--token', 'pa 55']", "['train.py', '--token', '***']"),
        ("Guess the password: pa55 opens", "Guess the password: *** opens"),
        ("logged in with hf_abcdefghijklmnopqrst", "logged in with ***"),
        ("sk-abcdefghijklmnop", "***"),  # the shortest key
        ("a://b@", "a://***@"),
        ("pwd=x TOKEN=b", "pwd=x TOKEN=***"),
        ("--token b", "--token ***"),
    ],
)
def test_a_password_or_key_is_hidden(text, shown):
    assert without_secrets(text) == shown
    assert without_secrets(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "sqlite:////home/a@b/mlflow.db",
        "http://host:5000/packages/@scope/name",
        "https://host/x, mail to a@b.org",
        '{"url":"http://host","mail":"a@b.org"}',
        "cluster.tokens_stand_for=1000 max_tokens=3 pad_token=7",
        "token: 'x' is unknown",
        "sort_key: 3, key=2",
        "tasks.answer=key",
        "hub_token: ${oc.env:HF_TOKEN} wandb_token: null",
        "credentials: {user: ada}",
    ],
)
def test_what_is_no_password_stays(text):
    assert without_secrets(text) == text


def test_settings_are_hidden_by_their_names_and_options_by_the_one_before():
    settings = {"db": {"password": "pa55", "url": "http://a:pa55@c"}, "+hub.token": "pa55", "rate": 0.1, "n": ["a"]}
    hidden = {"db": {"password": "***", "url": "http://***@c"}, "+hub.token": "***", "rate": 0.1, "n": ["a"]}
    assert values_without_secrets(settings) == hidden
    assert values_without_secrets(["train.py", "--api-key", "pa55", "--lr", "1"]) == [
        *("train.py", "--api-key", "***", "--lr", "1")
    ]


def test_a_command_stays_one_that_a_shell_reads():
    words = ["platform", "sweep", "own file.yaml", "--tracking-uri", "http://ada:it's@host"]
    assert command_without_secrets(words) == "platform sweep 'own file.yaml' --tracking-uri 'http://***@host'"


@pytest.mark.parametrize(
    "text",
    [
        "password: pa 55 words  # of 2026\nrate: 0.1",
        "db:\n  private_key: |\n    BEGIN\n    pa55\n  rate: 0.1",
        "api_key:   'it''s pa55'\ncredentials: [ada, bob]",
        "- password: pa55\n  rate: 0.1",
        "command: [train.py, --token, pa55]",
        "command:\n- train.py\n- --token\n- pa55",
        'environment: {HF_TOKEN: pa55, OTHER: "http://ada:pa55@host"}',
        "password: 55\nhub_token: null\nwandb_token: ${oc.env:WANDB_TOKEN}\nsecret: false",
        "prompt: 'Say the password: pa55 and secret = 3'",
    ],
)
def test_yaml_without_its_secrets_holds_the_same_as_its_values_without_theirs(text):
    shown = without_secrets(text)
    assert "55" not in shown
    assert yaml.safe_load(shown) == values_without_secrets(yaml.safe_load(text))
    assert without_secrets(shown) == shown
