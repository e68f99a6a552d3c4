"""Text worlds that answer the policy turn by turn. A map of the room:

protocol              what an environment does, and its replies
catalogue             the environment of a name, and the package that it needs
guess                 the game of this package: find a number between two bounds
textarena_games       single-player games of TextArena
gymnasium_texts       environments of Gymnasium whose observations and actions are text
gem_games             games of GEM
skyrl_environments    environments of skyrl-gym, with SkyRL's rows
reasoning_problems    problems of reasoning-gym, in one turn
host                  the process in which environments run: own random numbers, time limits, no output
endpoint              the policy as an OpenAI server, for agent programs
programs              the trainer's end of agent programs: starts, answers, ends and starts them again
hosting               the trainer's end of that process: asks, waits, restarts and replays
"""

from scalerl.environments.protocol import Reply
