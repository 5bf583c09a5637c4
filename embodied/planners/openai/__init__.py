"""Language and vision-language models behind the OpenAI chat protocol. See ``docs/planners.md``."""
